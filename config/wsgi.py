"""The WSGI entry point granian serves; refuses to start with a role that sees every tenant."""

import os
import sys

from django.core.wsgi import get_wsgi_application
from django.db import DatabaseError, connection

from config.health import why_unfit_role

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()

try:
    if reason := why_unfit_role():
        sys.exit(f"tooltrail: refusing to serve: {reason}")
except DatabaseError as error:
    sys.exit(f"tooltrail: the database cannot be reached: {str(error).splitlines()[0]}")
finally:
    connection.close()
