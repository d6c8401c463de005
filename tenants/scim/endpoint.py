"""What all SCIM requests have in common: the key, the rate limit, the tenant's scope, errors."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from pydantic import ValidationError
from scim2_models import BaseModel as ScimModel
from scim2_models import (
    Context,
    Error,
    InvalidValueException,
    NotFoundException,
    PayloadTooLargeException,
    PreconditionFailedException,
    Resource,
    ResponseParameters,
    SCIMException,
    UniquenessException,
)

from config.http.quota import Quota, QuotaExceededError
from config.postgresql.schema import why_unavailable
from tenants.api_auth import ApiKeyAuth
from tenants.identity.directory import DirectoryError, lock, scim_url
from tenants.identity.providers import find_provider, has_directory
from tenants.keys import ApiKeyIdentity, KeyRefused, actor_of
from tenants.models import IdentityProvider, Scope
from tenants.scim.documents import BODY_MAX_BYTES, POLICY
from tenants.scope import tenant_scope

MEDIA_TYPE = "application/scim+json"
PER_SECOND = 50
"""Requests of a key, in each process; ten seconds' worth may come at once."""
_QUOTA: Quota[UUID] = Quota(PER_SECOND)
_AUTH = ApiKeyAuth(Scope.SCIM)

type Handler = Callable[..., HttpResponse]


@dataclass(frozen=True)
class Visit:
    """A request of a provider's directory. The tenant's scope is open."""

    request: HttpRequest
    identity: ApiKeyIdentity
    provider: IdentityProvider

    @cached_property
    def base(self) -> str:
        """The address of the service."""
        return scim_url(self.request, self.provider)

    @cached_property
    def actor(self) -> str:
        """The name of the key's program in the audit log."""
        return actor_of(self.identity)

    def read[M: ScimModel](
        self, model: type[M], context: Context, longest: int = BODY_MAX_BYTES
    ) -> M:
        """The request's body, of at most so many bytes. Raises SCIMException, ValidationError."""
        sent = self.request.read(longest + 1)
        if len(sent) > longest:
            raise PayloadTooLargeException(detail=f"The body exceeds {longest:,} bytes.")
        return model.model_validate_json(sent, scim_ctx=context)

    def parameters(self, model: type[Any]) -> Any:
        """The parameters of the address. Raises ValidationError."""
        return model.model_validate(dict(self.request.GET.items()), scim_ctx=Context.SEARCH_REQUEST)

    def check_version(self, document: Resource[Any]) -> None:
        """Raise PreconditionFailedException unless `If-Match` names the stored version."""
        wanted = self.request.headers.get("If-Match", "*")
        if wanted.strip() != "*" and _version(document) not in _versions(wanted):
            raise PreconditionFailedException(detail="The resource has another version by now.")

    def answer(
        self,
        document: Resource[Any],
        context: Context,
        *,
        parameters: ResponseParameters[Any] | None = None,
        status: int = 200,
    ) -> HttpResponse:
        """A resource with its version; 304 if the client has it."""
        version = _version(document)
        known = self.request.headers.get("If-None-Match", "")
        if version and self.request.method in ("GET", "HEAD") and version in _versions(known):
            response = HttpResponse(status=304)
        else:
            body = document.model_dump_json(scim_ctx=context, response_parameters=parameters)
            response = HttpResponse(body, content_type=MEDIA_TYPE, status=status)
        if version:
            response["ETag"] = version
        if status == 201 and document.meta is not None and document.meta.location is not None:
            response["Location"] = document.meta.location
        return response


def endpoint(**handlers: Handler) -> Callable[..., HttpResponseBase]:
    """A view that calls the handler of the request's method with its Visit.

    A handler whose method changes something has the provider locked: requests and sign-ins of one
    provider come one after the other.
    """
    allowed = {**handlers, **({"HEAD": handlers["GET"]} if "GET" in handlers else {})}

    @csrf_exempt
    def view(request: HttpRequest, provider_id: UUID, **named: Any) -> HttpResponse:
        response = _respond(request, provider_id, allowed, named)
        response["Cache-Control"] = "private, no-cache"
        patch_vary_headers(response, ["Authorization", "X-API-Key"])
        if request.method == "HEAD":
            response.content = b""
        return response

    return view


def _respond(
    request: HttpRequest, provider_id: UUID, allowed: dict[str, Handler], named: dict[str, Any]
) -> HttpResponse:
    handler = allowed.get(request.method or "")
    if handler is None:
        methods = ", ".join(sorted(allowed))
        response = _error(405, f"Allowed methods: {methods}.")
        response["Allow"] = methods
        return response
    try:
        identity = _AUTH(request)
        _QUOTA.check(identity.api_key_pk)
        _QUOTA.take(identity.api_key_pk, 1)
        with tenant_scope(identity.tenant_id), POLICY:
            provider = find_provider(identity.tenant_id, provider_id)
            if provider is None or not has_directory(provider):
                raise NotFoundException(detail="No such directory.")
            if request.method not in ("GET", "HEAD"):
                lock(provider)
            return handler(Visit(request, identity, provider), **named)
    except KeyRefused as error:
        response = _error(error.status, error.message)
        if error.status == 401:
            response["WWW-Authenticate"] = 'Bearer realm="tooltrail"'
    except QuotaExceededError as error:
        response = _error(429, "Too many requests with this key.")
        response["Retry-After"] = str(max(1, round(error.retry_after_s)))
    except DirectoryError as error:
        refusal = UniquenessException if error.is_taken else InvalidValueException
        response = _refused(refusal(detail=str(error)).to_error())
    except SCIMException as error:
        response = _refused(error.to_error())
    except ValidationError as error:
        response = _refused(Error.from_validation_errors(error)[0])
    except RecursionError:
        response = _error(400, "The request is nested too deeply.")
    except (OperationalError, InterfaceError) as error:
        response = _error(503, f"{why_unavailable(error)} Try again.")
        response["Retry-After"] = "2"
    return response


def _error(status: int, detail: str) -> HttpResponse:
    return _refused(Error(status=status, detail=detail))


def _refused(error: Error) -> HttpResponse:
    return HttpResponse(
        error.model_dump_json(), content_type=MEDIA_TYPE, status=error.status or 400
    )


def _version(document: Resource[Any]) -> str | None:
    return None if document.meta is None else document.meta.version


def _versions(header: str) -> set[str]:
    return {each.strip() for each in header.split(",")}
