DROP TABLE key_quota, server_process;
