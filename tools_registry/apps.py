"""The app's configuration: its name in Django's admin."""

from django.apps import AppConfig


class ToolsRegistryConfig(AppConfig):
    """The app `tools_registry`."""

    name = "tools_registry"
    verbose_name = "Registry"
