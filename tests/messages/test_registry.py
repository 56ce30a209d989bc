"""A registry holds built-in items, registered items, and items of an entry point group."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from chatmemory.registry import Registry


@pytest.fixture
def registry() -> Registry[int]:
    return Registry(
        "shop.numbers", {"one": 1}, accepts=lambda item: isinstance(item, int) and item > 0
    )


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A function that installs a distribution with a module and its entry points."""

    def install(code: str, **entry_points: str) -> None:
        (tmp_path / "numbers_of_a_shop.py").write_text(code)
        metadata = tmp_path / "numbers-1.0.dist-info"
        metadata.mkdir()
        lines = [f"{name} = numbers_of_a_shop:{item}" for name, item in entry_points.items()]
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: numbers\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text("\n".join(["[shop.numbers]", *lines]))
        monkeypatch.syspath_prepend(tmp_path)

    yield install
    sys.modules.pop("numbers_of_a_shop", None)


def test_an_item_is_registered_replaced_and_unregistered(registry):
    registry.register("two", 3)
    registry.register("two", 2)
    assert dict(registry) == {"one": 1, "two": 2}
    with pytest.raises(TypeError, match=r"'three' cannot be registered in shop\.numbers"):
        registry.register("three", "three")
    registry.unregister("one")
    with pytest.raises(KeyError):
        registry.unregister("one")
    assert dict(registry) == {"two": 2}


def test_entry_points_come_after_the_others_and_replace_none(registry, installed):
    installed("A, B, C, D = 7, 8, 9, 9", seven="A", eight="B", one="C", two="D")
    registry.register("two", 2)
    assert dict(registry) == {"one": 1, "two": 2, "seven": 7, "eight": 8}
    assert list(registry)[:2] == ["one", "two"]
    assert (registry["eight"], len(registry)) == (8, 4)


def test_an_entry_point_that_cannot_be_loaded_is_logged_and_left_out(registry, installed, caplog):
    installed("A, B = 7, -1", seven="A", missing="C", refused="B")
    assert dict(registry) == {"one": 1, "seven": 7}
    assert [record.getMessage() for record in caplog.records] == [
        "shop.numbers 'missing' cannot be loaded and is ignored",
        "shop.numbers 'refused' cannot be loaded and is ignored",
    ]


def test_entry_points_are_not_loaded_for_a_registered_name(registry, installed):
    installed("raise SystemExit", seven="A")
    assert registry["one"] == 1


def test_a_module_can_use_the_registry_while_it_is_loaded(registry, installed, monkeypatch):
    installed("import sys\nA = len(sys.shop_registry) + 6", seven="A")
    monkeypatch.setattr(sys, "shop_registry", registry, raising=False)
    assert registry["seven"] == 7


def test_threads_wait_for_the_first_one_to_load(registry, installed):
    installed("import time\ntime.sleep(0.1)\nA = 7", seven="A")
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(registry.get, ["seven"] * 8)) == [7] * 8


def test_an_item_may_name_itself(installed):
    """A stored policy is found by its own kind, not by the name of the entry point."""
    installed("from types import SimpleNamespace\nA = SimpleNamespace(kind='seven')", alias="A")
    registry: Registry[object] = Registry("shop.numbers", {}, named_by="kind")
    assert list(registry) == ["seven"]
