"""Kubernetes' CEL functions beyond the recorded vectors: each answers as upstream's documentation says."""

import pytest

from skysail.scheduler.devices.cel.environment import CelCompileError, CelRuntimeError, compile_expression

pytest.importorskip("cel_expr_python")


@pytest.mark.parametrize(
    "expression",
    [
        "cidr('10.0.0.0/8').containsIP('10.1.1.1')",
        "!cidr('10.0.0.0/8').containsIP(ip('11.1.1.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "cidr('10.1.0.0/8').masked() == cidr('10.0.0.0/8')",
        "cidr('10.0.0.1/8').ip() == ip('10.0.0.1')",
        "cidr('10.0.0.0/8').prefixLength() == 8",
        "!isIP('x') && isIP('::1') && !isCIDR('10.0.0.0')",
        "ip.isCanonical('::1')",
        "ip('::1').isLoopback() && ip('::1').family() == 6",
        "ip('ff02::1').isLinkLocalMulticast() && ip('8.8.8.8').isGlobalUnicast()",
        "url('https://a.b:80/p?q=1&q=2').getQuery()['q'] == ['1', '2']",
        "url('https://a.b:80/p').getHost() == 'a.b:80' && url('https://a.b:80/p').getPort() == '80'",
        "!isURL('x') && isURL('/x')",
        "[1, 2, 3].isSorted() && ![2, 1].isSorted()",
        "[1, 2].sum() == 3 && ['a', 'b'].max() == 'b' && [2, 1].min() == 1",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && 'abc'.indexOf('c') == 2",
        "[3, 1].sort() == [1, 3] && [1, 1].distinct() == [1] && [1, 2].reverse() == [2, 1]",
        "[[1], [2]].flatten() == [1, 2] && [1, 2, 3].slice(0, 2) == [1, 2] && lists.range(2) == [0, 1]",
        "sets.intersects([1], [1, 2]) && sets.equivalent([1, 2], [2, 1, 1]) && !sets.contains([1], [2])",
        "'a1b2'.findAll('[0-9]') == ['1', '2'] && 'a1b2'.findAll('[0-9]', 1) == ['1'] && 'a'.find('[0-9]') == ''",
        "format.uuid().validate('x').hasValue() && !format.date().validate('2024-01-01').hasValue()",
        "!format.qualifiedName().validate('a.b/c').hasValue() && format.dns1123Label().validate('A').hasValue()",
        "quantity('1').add(1).isGreaterThan(quantity('1')) && quantity('1').sub(quantity('1')).asInteger() == 0",
        "semver('1.0.0-alpha.1').isLessThan(semver('1.0.0-alpha.beta'))",
        "semver('1.0.0-2').isLessThan(semver('1.0.0-10'))",
    ],
)
def test_it_is_true(expression):
    assert compile_expression(expression).run({}) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[].min()", "min called on empty list"),
        ("[1].slice(0, 2)", "cannot slice"),
        ("ip('x').family()", "parse error"),
        ("cidr('10.0.0.0').prefixLength()", "parse error"),
        ("dyn(semver('1.0.0')).isLessThan(dyn(quantity('1')))", "no such overload"),
        ("semver('1.0.0-01').major()", "must not contain leading zeroes"),
    ],
)
def test_it_fails_with_a_reason(expression, message):
    with pytest.raises(CelRuntimeError, match=message):
        compile_expression(expression).run({})


def test_unknown_functions_and_fields_do_not_compile():
    for expression in ("quantity('1').nosuch()", "device.nosuch == 1", "semver('1.0.0') + 1"):
        with pytest.raises(CelCompileError, match="compilation failed"):
            compile_expression(expression)
