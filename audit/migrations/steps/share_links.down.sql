DROP TABLE share_link;
