"""The page in a real browser: at every width, in both schemes, without other servers."""

from functools import cache
from pathlib import Path

import pytest

from sparkwright.extras.bench.results import Result
from sparkwright.extras.dashboard.render import html
from tests.browser.chromium import Look, Scheme, look
from tests.browser.picture import example
from tests.browser.tab import opened
from tests.unit.builders import catalog
from tests.unit.extras.bench.bench_results import NOON, cell, result
from tests.unit.extras.dashboard.pages import page_of

#: A small phone, a large phone, a tablet on either side of the width at which tables become blocks,
#: a desktop.
WIDTHS = (320, 390, 768, 769, 1280)


@cache
def seen(width: int, scheme: Scheme = "light") -> Look:
    """Observations of the example's page with all sections open."""
    return look(example(), width=width, scheme=scheme)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_does_not_overflow_at_any_width(width: int) -> None:
    page = seen(width)
    assert page.width == width
    assert page.scroll_width == width
    assert page.sticking_out == []
    assert page.squeezed == []


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_table_scrolls_sideways_on_a_phone_or_desktop(width: int) -> None:
    assert seen(width).scrolling == []


@pytest.mark.parametrize("hosts", [3, 12])
def test_the_whole_page_fits_three_screens_of_a_phone(hosts: int) -> None:
    """Faults, every finding and the fleet are visible while all sections are closed."""
    page = look(example(hosts), width=360, opened=False)
    assert page.scroll_width == 360
    assert page.sticking_out == []
    assert page.height <= 3 * 740


def test_faults_are_on_the_first_screen_of_a_phone() -> None:
    # A page is at least as high as its window, which is 900 here: the height reveals added content.
    head, findings = example().split("<main>")[0], example().split("</section>")[0]
    tall = '<p style="height:900px">below</p>'
    assert look(head + tall, width=360, opened=False).height - 900 < 370
    assert look(findings + tall, width=360, opened=False).height - 900 < 740


def test_remedies_speeds_and_memory_are_visible_and_a_print_has_every_section(
    tmp_path: Path,
) -> None:
    file = tmp_path / "page.html"
    file.write_text(example())
    with opened() as tab:
        tab.open(file.as_uri())
        shown = tab.wait("document.getElementById('history') && document.body.innerText")
        order = ("Look: run nvidia-smi", "unified", "63.1 tokens/s", "Speed in detail")
        assert [shown.index(text) for text in order] == sorted(map(shown.index, order))
        assert shown.count("the GPU clock is low") == 1
        assert "The newest result of each service" not in shown
        tab.call("Emulation.setEmulatedMedia", media="print")
        assert "The newest result of each service" in tab.value("document.body.innerText")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast_in_both_schemes(scheme: Scheme) -> None:
    page = seen(1280, scheme)
    assert page.dark == (scheme == "dark")
    assert page.faint == []


def test_the_report_sends_no_request() -> None:
    page = seen(1280)
    assert page.fetched == []
    assert page.blocked == []


@pytest.mark.parametrize("width", [320, 1280])
def test_very_long_names_stay_inside_the_page(width: int) -> None:
    endless = "x" * 200
    run: Result = result(
        cell(errors=1), host=endless, service=endless, vllm=endless,
        settings={endless: endless}, generator={"name": endless, "command": [endless]},
    )  # fmt: skip
    made = page_of(made=NOON, catalog=catalog(), results={(endless, endless): run})
    page = look(html(made, title=endless), width=width)
    assert page.scroll_width == width
    assert page.sticking_out == []


def test_the_probe_detects_planted_faults() -> None:
    """The probe reports each fault that is put into the page, as the tests above require."""
    page = example()
    wide = page.replace("<main>", '<main><p style="width:2000px">wide</p>')
    assert look(wide, width=390).sticking_out == ["P wide"]
    assert look(wide, width=390).scroll_width > 390
    narrow = page.replace("<main>", '<main><p style="width:9px">narrow text</p>')
    assert look(narrow, width=390).squeezed == ["P narrow text"]
    table = '<main><div class="wide"><p style="width:999px">far</p></div>'
    assert look(page.replace("<main>", table), width=390).scrolling == ["DIV far"]
    pale = page.replace("<main>", '<main><p style="color:#bbb">pale</p>')
    assert look(pale, width=390).faint == ["P pale: 1.92"]
    outside = page.replace("<main>", '<main><img src="http://127.0.0.1:9/x.png" alt="">')
    assert look(outside, width=390).blocked == ["http://127.0.0.1:9/x.png"]
    unguarded = outside.replace("img-src data:", "img-src *")
    assert look(unguarded, width=390).fetched == ["http://127.0.0.1:9/x.png"]
