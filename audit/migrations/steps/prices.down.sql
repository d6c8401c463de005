DROP TABLE call_units, unit_path, price_list;
