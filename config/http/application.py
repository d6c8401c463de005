"""The WSGI application of a web process: Django, with slow senders disconnected.

Importing it loads the settings, the middleware and the list of static files. It opens no connection
and starts no thread, so the parent of the web processes imports it once for all of them.
"""

import os

from django.core.wsgi import get_wsgi_application

from config.http.slow_senders import SlowSenders

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = SlowSenders(get_wsgi_application())
