"""A demo executor: real tools doing real work, recorded through the SDK over HTTP.

It is a separate program (`python -m audit.demo`, started by `manage.py up --demo`). Like any
executor, it knows only the server's URL and an API key. It does not use Django.
"""
