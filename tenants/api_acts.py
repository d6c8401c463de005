"""What all operations of the API that change something have in common.

An operation is a function of an `Act`. It runs in the scope of the key's tenant, calls the same
function as the page of that act, and returns the members of the JSON response. So an act is
recorded alike, whether a person or a program does it.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, wraps
from typing import Annotated, Any, Literal, cast

from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import (
    BaseModel,
    ConfigDict,
    StringConstraints,
    ValidationError,
    field_validator,
)

from config.http.problems import ProblemError, problem_responses
from config.http.request_bodies import json_body
from tenants.access import has_role
from tenants.actions import Person, storable
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.api_reads import Answer, answer_members
from tenants.keys import ApiKeyIdentity, actor_of
from tenants.models import ApiKey, Membership, Role, Scope, Tenant, User
from tenants.scope import tenant_scope

BODY_MAX_BYTES = 1_000_000
"""A draft with two schemas of the maximum size fits into it."""
_SHARED = ("missing_key", "unknown_key", "missing_scope", "parameter")

Stripped = Annotated[str, StringConstraints(strip_whitespace=True)]
"""A text of a body without white space around it, as forms read it."""

type Method = Literal["POST", "PUT", "PATCH", "DELETE"]


class Body(BaseModel):
    """The JSON body of an operation. Unknown members are rejected."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="forbid", strict=True)

    @field_validator("*")
    @classmethod
    def _in_utc(cls, value: object) -> object:
        """Instants are in UTC: PostgreSQL refuses an offset of 16 hours or more."""
        if isinstance(value, datetime) and value.tzinfo is not None:
            with suppress(OverflowError):  # of the years 1 and 9999, which no field takes
                return value.astimezone(UTC)
        return value


@dataclass(frozen=True)
class Act:
    """A request that changes something. The scope of the key's tenant is open."""

    request: HttpRequest
    identity: ApiKeyIdentity

    @cached_property
    def tenant(self) -> Tenant:
        """The key's tenant."""
        return Tenant.objects.get(pk=self.identity.tenant_id)

    @cached_property
    def actor(self) -> str:
        """The name of the key's program in the audit log."""
        return actor_of(self.identity)

    @cached_property
    def key(self) -> ApiKey:
        """The key."""
        keys = ApiKey.objects.select_related("owner")
        return keys.get(tenant_id=self.identity.tenant_id, pk=self.identity.api_key_pk)

    @property
    def owner(self) -> User:
        """The member who owns the key: personal objects, such as saved views, are theirs.

        Raises ProblemError if the key has no owner, or the owner is no longer a member.
        """
        owner = self.key.owner
        members = Membership.objects.filter(tenant_id=self.identity.tenant_id, user=owner)
        if owner is None or not members.exists():
            raise ProblemError(
                "no_owner", "This needs a key whose owner is a member: it changes what is theirs."
            )
        return owner

    def person(self, role: Role) -> Person:
        """The key's owner, who decides something as a person.

        Raises ProblemError unless they have the role and made the key themselves: whoever makes a
        key for somebody else knows it.
        """
        self.refuse_program()
        owner = self.owner
        membership = Membership.objects.get(tenant_id=self.identity.tenant_id, user=owner)
        is_own = not membership.is_service and self.key.created_by_id == owner.pk
        if not (is_own and has_role(membership, role)):
            raise ProblemError(
                "needs_person",
                f"This needs a person: a key that somebody with the role {role.value} made for"
                " themselves on the page of keys.",
            )
        return Person(owner, self.actor)

    def refuse_program(self) -> None:
        """Raise ProblemError if the tenant wants a person to do this, not a key alone."""
        if self.tenant.step_up:
            raise ProblemError(
                "needs_person",
                "In this tenant a person must do this in the browser, with a fresh confirmation.",
            )

    def read[B: Body](self, body: type[B]) -> B:
        """The request's body. Raises ProblemError: too large, or not of this structure."""
        sent = self.request.read(BODY_MAX_BYTES + 1)
        if len(sent) > BODY_MAX_BYTES:
            raise ProblemError("too_large", f"The body exceeds {BODY_MAX_BYTES:,} bytes.")
        try:
            # An empty body is an object without members: all of them may be optional.
            wanted = body.model_validate_json(sent or b"{}")
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise ProblemError(
                "malformed",
                f"{where}: {first['msg']}." if where else "The body is not valid JSON.",
            ) from error
        for name in wanted.model_fields_set:
            setattr(wanted, name, storable(getattr(wanted, name)))
        return wanted


def invalid(parameter: str, message: str) -> ProblemError:
    """The problem of a member of the body whose value breaks a rule."""
    return ProblemError("invalid", f"{parameter}: {message}", parameter=parameter)


def checked[F: BaseForm](form: F) -> F:
    """The page's form, filled from a body. Raises ProblemError with its first error."""
    if not form.is_valid():
        [(name, errors), *_] = form.errors.items()
        raise invalid("body" if name == "__all__" else name, str(errors[0]))
    return form


def acts(
    router: Router,
    method: Method,
    path: str,
    answer: type[Answer],
    *,
    scope: Scope,
    tag: str,
    body: type[Body] | None = None,
    status: int = 200,
    problems: Sequence[str] = (),
) -> Callable[[Callable[..., Mapping[str, Any]]], Callable[..., HttpResponse]]:
    """Register a function as the operation `method` `path` for keys with `scope`.

    Its parameters are the `Act` and those of the path. It reads the body with `Act.read`, after it
    has found what the path names, so that an unknown id is 404 whatever the body. It returns the
    members of `answer`. `problems` are the error codes that it raises in addition to those of every
    operation.
    """

    def register(view: Callable[..., Mapping[str, Any]]) -> Callable[..., HttpResponse]:
        @wraps(view)
        def operation(request: HttpRequest, **parameters: Any) -> HttpResponse:
            if request.GET:
                name = min(request.GET)
                raise ProblemError("parameter", f"Unknown parameter {name!r}.", parameter=name)
            identity = cast(ApiRequest, request).auth
            with tenant_scope(identity.tenant_id):
                members = view(Act(request, identity), **parameters)
                return answer_members(request, answer, members, status=status)

        signature = inspect.signature(view)
        _, *others = signature.parameters.values()
        first = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        vars(operation)["__signature__"] = signature.replace(parameters=[first, *others])
        codes = [*_SHARED, *(("malformed", "too_large", "invalid") if body else ()), *problems]
        described = problem_responses(codes)
        if body is not None:
            described |= json_body(body.model_json_schema())
        router.api_operation(
            [method],
            path,
            auth=ApiKeyAuth(scope),
            response={status: answer},
            by_alias=True,
            operation_id=view.__name__,
            summary=view.__name__.replace("_", " ").capitalize(),
            tags=[tag],
            openapi_extra=described,
        )(operation)
        return operation

    return register
