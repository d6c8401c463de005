DROP TABLE archive_segment, archive;
