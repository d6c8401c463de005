"""The form of the reports' page: scheduled reports."""

from django import forms

from audit.reports.periods import SCHEDULED
from audit.reports.schedule import LEAST_DAYS, MOST_DAYS, Schedule
from tenants.zones import zone_named


class ScheduleForm(forms.Form):
    """Which reports the worker makes, in which time zone, and how long all are kept."""

    kinds = forms.MultipleChoiceField(choices=[(kind, kind) for kind in SCHEDULED], required=False)
    time_zone = forms.CharField(max_length=64)
    keep_days = forms.IntegerField(min_value=LEAST_DAYS, max_value=MOST_DAYS)

    def clean_time_zone(self) -> str:
        """Return the name of the zone. Raises ValidationError for an unknown one."""
        name = str(self.cleaned_data["time_zone"]).strip()
        if str(zone_named(name)) != name:
            raise forms.ValidationError(
                "Unknown time zone. Use a name such as Europe/Berlin or UTC."
            )
        return name

    @property
    def schedule(self) -> Schedule:
        """The schedule from the form."""
        cleaned = self.cleaned_data
        return Schedule(cleaned["kinds"], cleaned["time_zone"], cleaned["keep_days"])
