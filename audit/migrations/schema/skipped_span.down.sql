DROP TABLE skipped_span;
