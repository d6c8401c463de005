DROP TABLE directory_group;
DROP TABLE directory_user;
