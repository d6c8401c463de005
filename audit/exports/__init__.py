"""Files for download: CSV and NDJSON of each document, Parquet of calls."""
