"""Forms of saved views and of the columns of a page."""

from django import forms

from audit.queries.saved_views import NAME_LENGTH, PAGES, QUERY_LENGTH


class SavedViewForm(forms.Form):
    """A name, the page, and what it lists: a query of calls, or what follows the address's ?."""

    name = forms.CharField(max_length=NAME_LENGTH, strip=True)
    page = forms.ChoiceField(choices=list(PAGES.items()), required=False)
    q = forms.CharField(max_length=QUERY_LENGTH, required=False)


class ChangedViewForm(forms.Form):
    """Another name, and whether all members are offered the view."""

    name = forms.CharField(max_length=NAME_LENGTH, strip=True)
    is_shared = forms.BooleanField(required=False)
