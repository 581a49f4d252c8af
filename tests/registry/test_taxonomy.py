"""The taxonomy covers the installed torch, and says something useful of each category."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry import taxonomy as module
from compilescope.knowledge.registry.table import Registry, load_registry
from compilescope.knowledge.registry.taxonomy import (
    CATEGORY_IDS,
    Taxonomy,
    load_taxonomy,
    read_taxonomy,
)
from registry import taxonomy_json

TEXT = Path(module.__file__).with_name("taxonomy.toml").read_text(encoding="utf-8")
# Which also take sites whose id says something else, by what the user's line does.
FROM_LINE = {"validation-guard", "logging"}


@pytest.fixture(scope="module")
def table() -> Registry:
    return load_registry()


@pytest.fixture(scope="module")
def taxonomy() -> Taxonomy:
    return load_taxonomy()


def test_what_commands_read_is_what_the_file_says(taxonomy: Taxonomy) -> None:
    renew = "run: python tests/registry/taxonomy_json.py"
    assert taxonomy_json.TARGET.read_bytes() == taxonomy_json.ready(), renew
    assert taxonomy.categories == read_taxonomy(taxonomy_json.SOURCE).categories


def test_every_installed_id_has_a_category(table: Registry, taxonomy: Taxonomy) -> None:
    lacking = [f"{e.gb_id} ({e.title})" for e in table if e.gb_id not in _ids(taxonomy)]
    assert not lacking, f"no category in taxonomy.toml for: {', '.join(lacking)}"


def _ids(taxonomy: Taxonomy) -> set[str]:
    return {gb_id for category in taxonomy for gb_id in category.ids}


def test_every_type_leads_to_the_category_of_its_id(table: Registry, taxonomy: Taxonomy) -> None:
    """A record that lost its ids is classified as one that has them."""
    for entry in table:
        by_id = taxonomy.category_of(entry.gb_id)
        for title in entry.titles:
            assert taxonomy.category_of(None, title) is by_id, f"{entry.gb_id}: {title}"


def test_the_types_beside_the_ids_are_the_tables(table: Registry, taxonomy: Taxonomy) -> None:
    wrong = [
        f"{gb_id}: {title}"
        for category in taxonomy
        for gb_id, title in category.ids.items()
        if (entry := table.get(gb_id)) is not None
        and title not in entry.titles
        and not set(category.types) & set(entry.titles)
    ]
    assert not wrong, wrong


def test_every_category_is_used(taxonomy: Taxonomy) -> None:
    assert [category.id for category in taxonomy] == list(CATEGORY_IDS)
    assert {category.id for category in taxonomy if category.from_line} == FROM_LINE
    for category in taxonomy:
        assert category.ids, f"{category.id} has no id"


def test_every_category_says_why_and_what_helps(taxonomy: Taxonomy) -> None:
    for category in taxonomy:
        assert category.means and len(set(category.means)) == len(category.means)
        for text in (category.why, category.fix):
            assert len(text) > 60 and text.endswith("."), category.id
            assert "\n" not in text and "  " not in text
        sentences = [s for s in category.why.split(". ") if s]
        assert 2 <= len(sentences) <= 3, category.id
    titles = [category.title for category in taxonomy]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(
    ("gb_id", "gb_type", "category"),
    [
        ("GB0170", "Data-dependent branching", "data-dependent-branch"),
        ("gb124", None, "scalar-extraction"),
        ("GB0036", None, "dynamic-shape-operator"),
        ("GB0007", None, "skipped-function"),
        ("GB0291", None, "logging"),
        ("GB0034", None, "validation-guard"),
        ("GB7000", None, "reconstruction"),
        ("GB0025", None, "explicit"),
        ("GB0039", None, "recompile-limit"),
        ("GB0219", None, "backend-failure"),
        ("GB0354", None, "user-error"),
        (None, "data-dependent BRANCHING", "data-dependent-branch"),
        (None, "can't handle functions not implemented in python ", "extension"),
        (
            None,
            "Consider annotating your code using torch._check*(). Could not guard on "
            "data-dependent expression u0 > 4 (unhinted: u0 > 4).",
            "data-dependent-branch",
        ),
        (
            None,
            "Could not extract specialized integer from data-dependent expression u0",
            "scalar-extraction",
        ),
        (None, "torch._dynamo.exc.BackendCompilerFailed", "backend-failure"),
        (None, "InternalTorchDynamoError", "compiler-bug"),
        (None, "torch._dynamo hit config.recompile_limit (8)", "recompile-limit"),
        (None, "TorchRuntimeError", "user-error"),
        ("GB9999", "Dynamo cache limit exceeded", "recompile-limit"),
    ],
)
def test_categories(
    taxonomy: Taxonomy, gb_id: str | None, gb_type: str | None, category: str
) -> None:
    found = taxonomy.category_of(gb_id, gb_type)
    assert found is not None and found.id == category


@pytest.mark.parametrize(
    ("gb_id", "gb_type"),
    [(None, None), ("", ""), ("GB9999", "a new type"), (None, "My UserErrorHandler failed")],
)
def test_what_is_not_known_has_no_category(
    taxonomy: Taxonomy, gb_id: str | None, gb_type: str | None
) -> None:
    assert taxonomy.category_of(gb_id, gb_type) is None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('id = "logging"', 'id = "loging"', "loging"),
        ('means = ["rewrite"]', 'means = ["magic"]', "magic"),
        ('GB0219 = "', 'GB0025 = "', "GB0025 is in explicit and in backend-failure"),
        ("GB0219 = ", "GB219 = ", "not a graph-break id"),
        ('GB0219 = "Backend compiler exception"', 'GB0219 = "copy.deepcopy()"', "the type"),
        ('id = "logging"', 'id = "exception"', "twice"),
        ('title = "Context manager"', 'title = ""', "has no title"),
        ('title = "Context manager"', "", "title"),
        ('title = "Context manager"', 'title = "x"\nfixx = "y"', "fixx"),
        ("[[category]]", "[[category", "is not valid"),
        ('GB0219 = "Backend', 'GB0219 = "x"\nGB0219 = "Backend', "is not valid"),
    ],
)
def test_a_bad_taxonomy_is_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in TEXT
    path = tmp_path / "taxonomy.toml"
    path.write_text(TEXT.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ToolError, match=says):
        read_taxonomy(path)


def test_a_category_may_not_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "taxonomy.toml"
    path.write_text(TEXT[: TEXT.rindex("[[category]]")], encoding="utf-8")
    with pytest.raises(ToolError, match="lacks the category compiler-bug"):
        read_taxonomy(path)
    with pytest.raises(ToolError, match="could not be read"):
        read_taxonomy(tmp_path / "absent.toml")
