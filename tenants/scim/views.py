"""The resources of SCIM: people and groups, and the documents about the service itself."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from scim2_models import (
    Context,
    ForbiddenException,
    ListResponse,
    NotFoundException,
    PatchOp,
    Resource,
    ResourceType,
    ResponseParameters,
    Schema,
    SearchRequest,
)
from scim2_models.path import Comparison

from tenants.actions import storable_text
from tenants.identity.directory import (
    add_group,
    add_user,
    change_group,
    change_user,
    groups_of,
    remove_group,
    remove_user,
    users_of,
)
from tenants.models import DirectoryGroup, DirectoryUser
from tenants.scim.documents import (
    PAGE_MAX,
    SERVICE,
    Group,
    User,
    group_document,
    user_document,
    wanted_group,
    wanted_user,
)
from tenants.scim.endpoint import MEDIA_TYPE, Visit, endpoint

_FILTER_MAX = 2_000
_SEARCH_MAX_BYTES = 10_000
_SHOWN = Context.RESOURCE_QUERY_RESPONSE
_AFTER_PUT = Context.RESOURCE_REPLACEMENT_RESPONSE
_AFTER_PATCH = Context.RESOURCE_PATCH_RESPONSE
# What directories ask for before each change, by an index of the database.
_INDEXED = {"username": "user_name__iexact", "externalid": "external_id"}
_INDEXED_GROUPS = {"displayname": "display_name__iexact", "externalid": "external_id"}


def _list_users(visit: Visit) -> HttpResponse:
    """List and find people."""
    request = _search(visit, SearchRequest[User])
    rows = _narrowed(users_of(visit.provider), request, _INDEXED)
    return _page(ListResponse[User], _user_documents(visit, rows), request)


def _add_user(visit: Visit) -> HttpResponse:
    """Add a person."""
    document = visit.read(User, Context.RESOURCE_CREATION_REQUEST)
    user = add_user(visit.provider, visit.actor, wanted_user(document))
    return visit.answer(_user_document(visit, user), Context.RESOURCE_CREATION_RESPONSE, status=201)


def _read_user(visit: Visit, pk: UUID) -> HttpResponse:
    """Show a person."""
    user = _user(visit, pk)
    parameters = visit.parameters(ResponseParameters[User])
    return visit.answer(_user_document(visit, user), _SHOWN, parameters=parameters)


def _replace_user(visit: Visit, pk: UUID) -> HttpResponse:
    """Replace what is known of a person."""
    user = _user(visit, pk)
    visit.check_version(_user_document(visit, user))
    document = visit.read(User, Context.RESOURCE_REPLACEMENT_REQUEST)
    if document.active is None:
        document.active = user.is_active  # silence does not let anybody in again
    change_user(visit.provider, visit.actor, user, wanted_user(document))
    return visit.answer(_user_document(visit, user), _AFTER_PUT)


def _patch_user(visit: Visit, pk: UUID) -> HttpResponse:
    """Change parts of what is known of a person."""
    user = _user(visit, pk)
    document = _user_document(visit, user)
    visit.check_version(document)
    visit.read(PatchOp[User], Context.RESOURCE_PATCH_REQUEST).patch(document)
    change_user(visit.provider, visit.actor, user, wanted_user(document))
    return visit.answer(_user_document(visit, user), _AFTER_PATCH)


def _delete_user(visit: Visit, pk: UUID) -> HttpResponse:
    """Remove a person."""
    user = _user(visit, pk)
    visit.check_version(_user_document(visit, user))
    remove_user(visit.provider, visit.actor, user)
    return HttpResponse(status=204)


def _list_groups(visit: Visit) -> HttpResponse:
    """List and find groups."""
    request = _search(visit, SearchRequest[Group])
    rows = _narrowed(groups_of(visit.provider), request, _INDEXED_GROUPS)
    documents = [group_document(visit.base, row) for row in rows]
    return _page(ListResponse[Group], documents, request)


def _search_all(visit: Visit) -> HttpResponse:
    """Find people and groups."""
    request = _search(visit, SearchRequest[User | Group])
    users = _user_documents(visit, users_of(visit.provider))
    groups = [group_document(visit.base, row) for row in groups_of(visit.provider)]
    return _page(ListResponse[User | Group], [*users, *groups], request)


def _add_group(visit: Visit) -> HttpResponse:
    """Add a group."""
    document = visit.read(Group, Context.RESOURCE_CREATION_REQUEST)
    group = add_group(visit.provider, visit.actor, wanted_group(document))
    return visit.answer(
        _group_document(visit, group), Context.RESOURCE_CREATION_RESPONSE, status=201
    )


def _read_group(visit: Visit, pk: UUID) -> HttpResponse:
    """Show a group."""
    group = _group(visit, pk)
    parameters = visit.parameters(ResponseParameters[Group])
    return visit.answer(_group_document(visit, group), _SHOWN, parameters=parameters)


def _replace_group(visit: Visit, pk: UUID) -> HttpResponse:
    """Replace a group and its members."""
    group = _group(visit, pk)
    visit.check_version(_group_document(visit, group))
    document = visit.read(Group, Context.RESOURCE_REPLACEMENT_REQUEST)
    change_group(visit.provider, visit.actor, group, wanted_group(document))
    return visit.answer(_group_document(visit, group), _AFTER_PUT)


def _patch_group(visit: Visit, pk: UUID) -> HttpResponse:
    """Change a group, or add and remove members."""
    group = _group(visit, pk)
    document = _group_document(visit, group)
    visit.check_version(document)
    visit.read(PatchOp[Group], Context.RESOURCE_PATCH_REQUEST).patch(document)
    change_group(visit.provider, visit.actor, group, wanted_group(document))
    return visit.answer(_group_document(visit, group), _AFTER_PATCH)


def _delete_group(visit: Visit, pk: UUID) -> HttpResponse:
    """Remove a group."""
    group = _group(visit, pk)
    visit.check_version(_group_document(visit, group))
    remove_group(visit.provider, visit.actor, group)
    return HttpResponse(status=204)


def _read_config(visit: Visit) -> HttpResponse:
    """Say what the service can do."""
    assert SERVICE.config is not None
    return visit.answer(SERVICE.config, _SHOWN)


def _list_types(visit: Visit) -> HttpResponse:
    """List the kinds of resources."""
    return _all(visit, ListResponse[ResourceType], SERVICE.resource_types)


def _read_type(visit: Visit, name: str) -> HttpResponse:
    """Show a kind of resource."""
    return _one(visit, SERVICE.resource_types, lambda one: one.name, name)


def _list_schemas(visit: Visit) -> HttpResponse:
    """List the schemas."""
    return _all(visit, ListResponse[Schema], SERVICE.schemas)


def _read_schema(visit: Visit, name: str) -> HttpResponse:
    """Show a schema."""
    return _one(visit, SERVICE.schemas, lambda one: str(one.id), name)


def _read_nothing(visit: Visit, rest: str) -> HttpResponse:
    """Whatever else is asked for."""
    raise NotFoundException(detail="No such resource.")


def _user(visit: Visit, pk: UUID) -> DirectoryUser:
    user: DirectoryUser | None = users_of(visit.provider).filter(pk=pk).first()
    if user is None:
        raise NotFoundException(detail="No such person.")
    return user


def _group(visit: Visit, pk: UUID) -> DirectoryGroup:
    group: DirectoryGroup | None = groups_of(visit.provider).filter(pk=pk).first()
    if group is None:
        raise NotFoundException(detail="No such group.")
    return group


def _user_document(visit: Visit, user: DirectoryUser) -> User:
    groups = groups_of(visit.provider).filter(members__contains=[user.pk])
    return user_document(visit.base, user, groups.values_list("pk", "display_name"))


def _user_documents(visit: Visit, rows: Iterable[DirectoryUser]) -> list[User]:
    groups: dict[UUID, list[tuple[UUID, str]]] = {}
    for pk, name, members in groups_of(visit.provider).values_list("pk", "display_name", "members"):
        for member in members:
            groups.setdefault(member, []).append((pk, name))
    return [user_document(visit.base, row, groups.get(row.pk, ())) for row in rows]


def _group_document(visit: Visit, group: DirectoryGroup) -> Group:
    return group_document(visit.base, group)


def _search(visit: Visit, model: type[Any]) -> Any:
    """What a list is asked for: by the address, or by the body of a POST (RFC 7644, 3.4.3)."""
    if visit.request.method == "POST":
        return visit.read(model, Context.SEARCH_REQUEST, _SEARCH_MAX_BYTES)
    if len(visit.request.GET.get("filter", "")) > _FILTER_MAX:
        raise ForbiddenException(detail=f"A filter has at most {_FILTER_MAX:,} characters.")
    return visit.parameters(model)


def _narrowed(rows: Any, request: Any, indexed: dict[str, str]) -> Any:
    """The rows that a filter with one comparison can match, found by the database."""
    node = None if request.filter is None else request.filter.ast
    if isinstance(node, Comparison) and node.op == "eq" and isinstance(node.value, str):
        lookup = indexed.get(str(node.attr_path).rpartition(":")[2].lower())
        if lookup is not None and storable_text(node.value) == node.value:
            return rows.filter(**{lookup: node.value})
    return rows


def _page(response: type[Any], documents: Sequence[Resource[Any]], request: Any) -> HttpResponse:
    """The part of the documents that a request selects, in its order."""
    if request.filter is not None:
        documents = [each for each in documents if request.filter.match(each)]
    documents = request.sort(documents)
    count = PAGE_MAX if request.count is None else min(request.count, PAGE_MAX)
    start = request.start_index_0 or 0
    shown = documents[start : start + count]
    body = response(
        total_results=len(documents),
        start_index=start + 1,
        items_per_page=len(shown),
        resources=list(shown),
    ).model_dump_json(scim_ctx=_SHOWN, response_parameters=request)
    return HttpResponse(body, content_type=MEDIA_TYPE)


def _all(visit: Visit, response: type[Any], documents: Sequence[Resource[Any]]) -> HttpResponse:
    if "filter" in visit.request.GET:  # RFC 7644, section 4
        raise ForbiddenException(detail="This list takes no filter.")
    body = response(
        total_results=len(documents),
        start_index=1,
        items_per_page=len(documents),
        resources=list(documents),
    ).model_dump_json(scim_ctx=_SHOWN)
    return HttpResponse(body, content_type=MEDIA_TYPE)


def _one[R: Resource[Any]](
    visit: Visit, documents: Sequence[R], name_of: Callable[[R], str | None], name: str
) -> HttpResponse:
    for document in documents:
        if name_of(document) == name:
            return visit.answer(document, _SHOWN)
    raise NotFoundException(detail="No such resource.")


users = endpoint(GET=_list_users, POST=_add_user)
user = endpoint(GET=_read_user, PUT=_replace_user, PATCH=_patch_user, DELETE=_delete_user)
user_search = endpoint(POST=_list_users)
groups = endpoint(GET=_list_groups, POST=_add_group)
group = endpoint(GET=_read_group, PUT=_replace_group, PATCH=_patch_group, DELETE=_delete_group)
group_search = endpoint(POST=_list_groups)
search = endpoint(POST=_search_all)
config = endpoint(GET=_read_config)
types = endpoint(GET=_list_types)
type_named = endpoint(GET=_read_type)
schemas = endpoint(GET=_list_schemas)
schema_named = endpoint(GET=_read_schema)
nothing = endpoint(GET=_read_nothing)
