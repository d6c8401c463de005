"""Tools in Django's admin.

The form shows the current contract. A new tool's contract becomes its first version. A changed
contract becomes a draft: its review page shows what it would break and publishes it.
"""

from typing import Any, cast

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from pydantic import ValidationError as ContractError

from tenants.access import TenantRequest
from tenants.admin_site import TenantModelAdmin, site
from tools_registry.changes import Publisher, record_change
from tools_registry.documents import DocumentField
from tools_registry.drafts import DraftExistsError, create_draft, find_draft
from tools_registry.models import ChangeKind, OnCollision, Tool, ToolVersion
from tools_registry.schemas import ToolContract, judging_problems
from tools_registry.tools import describe_tool
from tools_registry.versions import publish_version, schemas_in_use

_CONTRACT = (
    "description",
    "input_schema",
    "output_schema",
    "trusted",
    "ephemeral",
    "on_collision",
    "meta",
)


class ToolForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A tool's name, its notes, and its current contract."""

    description = forms.CharField(widget=forms.Textarea(attrs={"rows": 4, "cols": 80}))
    input_schema = DocumentField(initial={"type": "object", "properties": {}})
    output_schema = DocumentField(
        required=False, help_text="Leave empty to skip output validation."
    )
    trusted = forms.BooleanField(required=False)
    ephemeral = forms.BooleanField(required=False)
    on_collision = forms.ChoiceField(choices=OnCollision, initial=OnCollision.THROW)
    meta = DocumentField(required=False, rows=4, help_text="Labels. Not part of the digest.")

    contract: ToolContract

    class Meta:
        model = Tool
        fields = ("name", "notes")
        exclude = ("meta",)  # noqa: DJ006  # the tool's own meta: the field here is the contract's

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.current: ToolVersion | None = None
        if self.instance.current_number:
            self.current = ToolVersion.objects.get(
                tool=self.instance, number=self.instance.current_number
            )
            self.initial.update({member: getattr(self.current, member) for member in _CONTRACT})

    def clean(self) -> dict[str, Any]:
        """Build the contract from the input; the same rules apply as for executors."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        name = self.instance.name if self.current else cleaned["name"]
        typed = {member: cleaned[member] for member in _CONTRACT}
        try:
            self.contract = ToolContract.model_validate(
                {**typed, "meta": cleaned["meta"] or {}, "name": name}
            )
        except ContractError as error:
            for problem in error.errors(include_url=False, include_context=False):
                member = str(problem["loc"][0])
                self.add_error(member, problem["msg"].removeprefix("Value error, "))
            return cleaned
        in_use = schemas_in_use(self.instance)
        for member, complaint in judging_problems(self.contract, in_use=in_use).items():
            self.add_error(member, f"The schema {complaint}")
        if self.current is None:
            if Tool.objects.filter(name=name).exists():
                self.add_error("name", "A tool with this name is already registered.")
        elif self.changes_contract:
            self._refuse_draft()
        elif self.contract.meta != self.current.meta:
            self.add_error("meta", "Labels alone do not make a new version.")
        return cleaned

    @property
    def changes_contract(self) -> bool:
        """Whether the input is a different contract than the current one."""
        return self.current is None or self.contract.digest != self.current.digest

    def _refuse_draft(self) -> None:
        """Add an error if the contract is an earlier version's, or if the tool has a draft."""
        earlier = ToolVersion.objects.filter(digest=self.contract.digest).first()
        if earlier is not None:
            self.add_error(None, f"This contract is already version {earlier.number}.")
        draft = find_draft(self.instance)
        if draft is not None:
            self.add_error(None, str(DraftExistsError(draft)))


class PublishedVersions(admin.TabularInline):  # type: ignore[type-arg]  # as ToolForm
    """All versions of the tool, read-only."""

    model = ToolVersion
    fields = ("number", "digest", "created_at", "created_by", "created_by_key")
    readonly_fields = fields
    ordering = ("-number",)
    verbose_name_plural = "published versions"
    extra = 0
    can_delete = False

    def view_on_site(self, obj: ToolVersion) -> str:
        """The version's page."""
        return obj.get_absolute_url()

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """True for everyone who may edit the tool."""
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """False: a version comes from publishing a draft."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """False: a published version never changes."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """False: a published version is never deleted."""
        return False


@admin.register(Tool, site=site)
class ToolAdmin(TenantModelAdmin):
    """Tools of the session's tenant."""

    form = ToolForm
    inlines = (PublishedVersions,)
    list_display = ("name", "current_number", "created_at")
    search_fields = ("name",)
    ordering = ("name",)
    fieldsets = (
        (None, {"fields": ("name", "notes")}),
        (
            "Contract",
            {
                "fields": _CONTRACT,
                "description": "Saving a changed contract creates a draft. Its review page shows"
                " breaking changes and publishes it.",
            },
        ),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Tool | None = None) -> tuple[str, ...]:
        """The name of an existing tool, because the events of its calls contain it."""
        return () if obj is None else ("name",)

    def view_on_site(self, obj: Tool) -> str:
        """The tool's page, linked directly instead of through content types."""
        return obj.get_absolute_url()

    def save_model(self, request: HttpRequest, obj: Tool, form: Any, change: bool) -> None:
        """Store the notes; publish a new tool's contract; make a draft of a changed contract."""
        request = cast(TenantRequest, request)
        by = Publisher(request.user)
        if change:
            notes, obj.notes = obj.notes, form.initial["notes"]
            describe_tool(obj, {"notes": notes}, by)
        else:
            obj.tenant = request.tenant
            obj.save()
            record_change(obj, ChangeKind.CREATED, by)
        if form.current is None:
            publish_version(obj, form.contract, by)
        elif form.changes_contract:
            create_draft(obj, form.contract, by)

    def response_change(self, request: HttpRequest, obj: Tool) -> HttpResponse:
        """Redirect to the review page if there is a draft."""
        if find_draft(obj) is not None:
            return redirect("draft_review", obj.pk)
        return super().response_change(request, obj)

    def log_addition(  # type: ignore[override]  # nothing reads the returned log entry
        self, request: HttpRequest, obj: Any, message: Any
    ) -> None:
        """Do nothing: `save_model` has recorded it."""

    def log_change(  # type: ignore[override]  # nothing reads the returned log entry
        self, request: HttpRequest, obj: Any, message: Any
    ) -> None:
        """Do nothing: `save_model` has recorded it."""
