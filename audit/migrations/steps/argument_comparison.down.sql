DROP TABLE argument_comparison;
