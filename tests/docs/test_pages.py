"""The pages hang together: each is in the navigation, and what they link to and name exists."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
NAMED = re.compile(r"`((?:docs|examples|deploy|bench|tests|e2e)/[\w./-]+)`")


def test_every_page_is_in_the_navigation():
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(navigation) == [page.name for page in PAGES]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_what_a_page_points_to_exists(page):
    text = page.read_text()
    links = [link for link in LINK.findall(text) if "://" not in link]
    missing = [link for link in links if not (page.parent / link).exists()]
    missing += [name for name in NAMED.findall(text) if not (ROOT / name).exists()]
    assert missing == []
