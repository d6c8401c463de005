"""Random schemas and values, from a seed; small, so that they often fit each other."""

import random
from typing import Any

TEXTS = ["", "a", "ab", "abc", "42", " 7 ", "-1.5", "true", '{"a": 1}', "[1]", "é", "😀", "a😀"]
TEXTS += ["\u2028", "\ufeff5", "1e3", "null", "0x10", "\ud83d"]
NUMBERS = [0, 1, -1, 2, 3.5, 1.0, -0.0, 1e21, 1e-7, 255, 2**53 + 1, 0.1, 10**25]
NAMES = ["a", "b", "1", "0", "é", "😀", "a.b", ""]
PATTERNS = ["^a", "^.$", "[^a]", "\\d+", "^\\w*$", "😀", "^[\\s\\S]{2}$", "a|b", "\\bfoo", "^\\S+$"]
TYPES = ["string", "number", "integer", "boolean", "null", "object", "array"]
FORMATS = ["email", "date-time", "uri", "ipv4", "unknown"]


class Random(random.Random):
    """Makes values, and schemas that may refer to three definitions and to themselves."""

    def value(self, depth: int = 3) -> Any:
        kind = self.randrange(8 if depth else 5)
        match kind:
            case 0:
                return self.choice(NUMBERS)
            case 1 | 2:
                return self.choice(TEXTS)
            case 3:
                return self.choice([True, False, None])
            case 4:
                return self.randrange(-3, 12)
            case 5:
                return [self.value(depth - 1) for _ in range(self.randrange(4))]
        return {self.choice(NAMES): self.value(depth - 1) for _ in range(self.randrange(4))}

    def root(self) -> dict[str, Any]:
        """A whole schema, of draft 2020-12 or 07."""
        self.is_07 = self.random() < 0.3
        schema: dict[str, Any] = self.schema(3, boolean=False)
        if schema.keys() <= {"default"}:
            schema["type"] = self.choice(TYPES)  # a remark alone makes no schema
        if self.random() < 0.3:
            schema["$defs"] = {name: self.schema(2) for name in "xyz"}
            self.place_references(schema)
        if self.is_07:
            schema["$schema"] = "http://json-schema.org/draft-07/schema#"
        return schema

    def place_references(self, schema: Any) -> None:
        targets = ["#/$defs/x", "#/$defs/y", "#/$defs/z", "#"]
        for keyword in ("properties", "patternProperties"):
            for name, below in schema.get(keyword, {}).items():
                if self.random() < 0.5:
                    schema[keyword][name] = {"$ref": self.choice(targets)}
                elif isinstance(below, dict):
                    self.place_references(below)
        for keyword in ("items", "additionalProperties", "contains"):
            if isinstance(schema.get(keyword), dict) and self.random() < 0.5:
                schema[keyword] = {"$ref": self.choice(targets)}
        if "allOf" in schema and self.random() < 0.5:
            schema["allOf"].append({"$ref": self.choice(targets[:3])})

    def schema(self, depth: int, *, boolean: bool = True) -> Any:
        if boolean and self.random() < 0.07:
            return self.random() < 0.6
        schema: dict[str, Any] = {}
        if self.random() < 0.7:
            one = self.choice(TYPES)
            several = self.sample(TYPES, self.randrange(1, 4))
            schema["type"] = several if self.random() < 0.25 else one
        for _ in range(self.choice([1, 1, 2, 3])):
            keyword = self.choice(self.keywords(depth))
            schema[keyword] = self.argument(keyword, depth - 1)
        return schema

    def keywords(self, depth: int) -> list[str]:
        plain = [
            "enum",
            "const",
            "minLength",
            "maxLength",
            "pattern",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "minItems",
            "maxItems",
            "required",
            "multipleOf",
            "uniqueItems",
            "minProperties",
            "maxProperties",
            "format",
            "default",
        ]
        if not depth:
            return plain
        nested = [
            "properties",
            "properties",
            "items",
            "items",
            "additionalProperties",
            "anyOf",
            "oneOf",
            "allOf",
            "not",
            "if",
            "then",
            "else",
            "contains",
            "patternProperties",
            "propertyNames",
        ]
        if self.is_07:
            nested += ["dependencies", "additionalItems"]
        else:
            nested += ["prefixItems", "dependentSchemas", "unevaluatedProperties"]
            nested += ["unevaluatedItems", "dependentRequired", "minContains", "maxContains"]
        return plain + nested * 2

    def argument(self, keyword: str, depth: int) -> Any:
        match keyword:
            case "enum":
                return [self.value(1) for _ in range(self.randrange(1, 4))]
            case "const" | "default":
                return self.value(1)
            case "pattern":
                return self.choice(PATTERNS)
            case "format":
                return self.choice(FORMATS)
            case "multipleOf":
                return self.choice([1, 2, 0.5, 0.1, 3])
            case "uniqueItems":
                return self.random() < 0.8
            case "required":
                return self.sample(NAMES, self.randrange(1, 3))
            case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
                return self.choice(NUMBERS)
            case "properties" | "dependentSchemas" | "dependencies":
                names = self.sample(NAMES, self.randrange(1, 4))
                return {name: self.schema(depth) for name in names}
            case "patternProperties":
                return {self.choice(PATTERNS): self.schema(depth)}
            case "dependentRequired":
                return {self.choice(NAMES): self.sample(NAMES, 1)}
            case "anyOf" | "oneOf" | "allOf" | "prefixItems":
                return [self.schema(depth) for _ in range(self.randrange(1, 4))]
            case "items" if self.is_07 and self.random() < 0.3:
                return [self.schema(depth) for _ in range(2)]
        if keyword.startswith(("min", "max")):
            return self.randrange(4)
        return self.schema(depth)
