DROP TABLE quarter_rollup;
