"""A demonstration executor: real tools doing real work, recorded through the SDK over HTTP.

It is a program of its own (`python -m audit.demo`, started by `manage.py up --demo`) that
knows the server only by its URL and an API key, as any executor would. No Django here.
"""
