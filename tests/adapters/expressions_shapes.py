"""The shapes of random JSONata: one a line, `_` and a letter where an expression of that type goes in."""

from __future__ import annotations

from typing import Final

NUMBERS: Final = """
    _N + _N
    _N - _N
    _N * _N
    _N / _N
    _N % _N
    -(_N)
    $sum(nums)
    $sum(_L)
    $count(_L)
    $count(_A)
    $max(_L)
    $min(nums)
    $average(nums)
    $length(_T)
    $abs(_N)
    $floor(_N)
    $ceil(_N)
    $round(_N)
    $round(_N, _S)
    $power(_N, 2)
    $sqrt($abs(_N))
    $number(num)
    $number(_T)
    $number(_B)
    (_B ? _N : _N)
    (_N ?? _N)
    (_N ?: _N)
    (-5 ?? 99)
    $sum(items.(price * qty))
    $parseInteger('12,345', '#,##0')
    (_N; _N)
    ($x := _N; $x + $x)
    $reduce(nums, function($a, $b){$a + $b}, _N)
    $toMillis('2026-02-03T04:05:06Z')
    $toMillis('2026-02-03')
"""
TEXTS: Final = """
    _T & _T
    _T & _N
    _A & _T
    $string(_A)
    $string(_N)
    $string(_L)
    $string(_O)
    $string(_A, true)
    $string(mixed, true)
    $pad(_T, 7, 'ab')
    $formatNumber(_N, '0.0%')
    $formatNumber(_N, '#0.###;(#0.###)')
    $formatNumber(_N, '0.00e0')
    $formatInteger(n, '001')
    $formatInteger(items[1].price, 'w;o')
    $uppercase(_T)
    $lowercase(_T)
    $trim('  a  b ' & _T)
    $substring(_T, _S)
    $substring(_T, _S, _S)
    $substringBefore(_T, 'l')
    $substringAfter(_T, 'l')
    $pad(_T, 8)
    $pad(_T, -8, '#')
    $join(strs, '-')
    $join(strs)
    $join($split(_T, 'l'), '+')
    $replace(_T, 'l', 'L')
    $replace(_T, 'l', '$1', 1)
    $formatNumber(_N, '#,##0.00')
    $formatNumber(_N, '0')
    $formatBase(_N, 2)
    $formatInteger(n, 'w')
    $formatInteger(n, 'I')
    $base64encode(_T)
    $base64decode($base64encode(_T))
    $encodeUrlComponent(_T)
    $encodeUrl('http://x/' & _T)
    $decodeUrlComponent('a%20b')
    $type(_A)
    $fromMillis(0)
    $fromMillis(1700000000000, '[Y0001]-[M01]-[D01]')
    (_B ? _T : _T)
    (_T ?? _T)
    (_T ?: _T)
"""
TRUTHS: Final = """
    _N > _N
    _N <= _N
    _T < _T
    _N = _N
    _A = _A
    _A != _A
    _L = _L
    _O = _O
    _B and _B
    _B or _B
    $not(_B)
    $not(_A)
    $boolean(_A)
    $boolean(_L)
    $exists(_A)
    $exists(_O)
    _N in nums
    _T in strs
    _A in _L
    $contains(_T, 'l')
    nil = null
"""
LISTS: Final = """
    [_A, _A]
    [_N, _T]
    [_N.._N]
    [_S..3, _N]
    _L[_S]
    _L[[0..1]]
    $append(_L, _L)
    $append(_A, _L)
    $reverse(_L)
    $sort(nums)
    $sort(strs)
    $sort(_L)
    $sort(items, function($a, $b){$a.price > $b.price}).id
    $distinct(_L)
    $map(_L, _F)
    $filter(_L, _P)
    $zip(_L, nums)
    $keys(_O)
    $keys(items)
    $spread(_O)
    $spread(items)
    $zip(_L, _L, strs)
    $sift(_O, function($v, $k){$k = 'a'}).a
    $each(_O, function($v, $k){$k & '=' & $string($v)})
    $split(_T, '')
    $split(_T, 'l', 2)
    _L.($ & '!')
    _I.name
    _I.tags
    _I.sub.v
    _I[_S].id
    nested.$sum($)
    nested[0]
    nested.*
    _L[]
    nums[$ > _N]
    strs[$ != 'a']
    _O.*
    **.v
    _I.(price * qty)
"""
MAPPINGS: Final = """
    {'a': _A}
    {'a': _N, 'b': _T}
    {_T: _A}
    _I{kind: id}
    _I{kind: $sum(price)}
    _I{name: {'q': qty}}
    $merge([_O, _O])
    $merge(items.{name: id})
    $sift(_O, function($v){$type($v) = 'number'})
    $lookup(o, 'b')
    _O ~> |$|{'z': _N}|
    o ~> |b|{'y': _A}, 'c'|
    _I[0]
    (_O ?? _O)
"""
ANYTHING: Final = """
    _N
    _T
    _B
    _L
    _O
    $lookup(_O, 'a')
    $lookup(items, 'id')
    _O.a
    _O.b.c
    _L[0]
    _L[-1]
    (_A ?? _A)
    (_A ?: _A)
    (_B ? _A)
    $single(nums, function($v){$v = 10})
    $reduce(_L, function($a, $b){$a & $b})
    $reduce(nums, function($a, $b, $i){$a + $b * $i})
    $$.n
    [[_A]]
"""
SHAPES: Final = """
    items[price > _N].name
    items[kind = 'x' and qty > _N].{'n': name, 'p': price}
    items^(>price, name).id
    items^(<kind, >id)[0].name
    items^(note).id
    items{kind: $count($)}
    items.tags[0]
    items.(tags[0])
    items.tags[_S]
    (items.tags)[_S]
    items[_S].tags[]
    items#$i[$i > 0].{'i': $i, 'id': id}
    items@$x.sub.{'id': $x.id, 'v': v}
    items.sub.{'v': v, 'of': %.id}
    items.sub.%.name
    _L ~> $count
    _T ~> $uppercase() ~> $length
    nums ~> $map(_F) ~> $filter(_P)
    ($f := function($x, $y){$x * $y + 1}; $f(_N, 2))
    ($f := $substring(?, 0, 2); $f(_T))
    ($add := function($a, $b){$a + $b}; $inc := $add(?, 1); $map(nums, $inc))
    ($up := $trim ~> $uppercase; $up(_T))
    ($fact := function($k){$k <= 1 ? 1 : $k * $fact($k - 1)}; $fact(6))
    ($a := [1, 2]; $b := $append($a, _A); [$count($a), $count($b)])
    ($o := _O; $p := $o ~> |$|{'added': 1}|; [$o = $p, $p.added])
    $map(items, function($v, $i, $l){$v.id + $i + $count($l)})
    $filter(items, function($v){$v.price > _N}).name
    $each(items[0], function($v, $k){$k})
    $map(_L, function($v){$v})
    $sum($filter(nums, _P))
    $string({'l': _L, 'n': _N, 's': _T})
    function($x){$x + _N}(2)
    items.price ~> $max
    items.(qty > 5 ? name : 'few')
    $assert(_B, 'no')
    _B ? $error('stop') : _A
    items[0] ~> |sub|{'v': 9}|
    $ ~> |items[kind = 'x']|{'price': price * 2}, ['tags', 'qty']| ~> $lookup('items')
    items{kind: name}.x
    items.tags{$: $count($)}
    items@$a.nums@$b[$a.id = $b].{'a': $a.name, 'b': $b}
    items#$i.tags#$j.[$i, $j, $]
    $map($keys(_O), function($k){$uppercase($k)})
    (_L)[$type($) = 'number']
    $filter(_L, function($v, $i, $l){$i = $count($l) - 1})
    {_T: 1, 'fixed': 2}
    $merge($map(items, function($v){{$v.name: $v.price}}))
    (_L).(_N)
    items.(_T)
    o.(_A)
    items.{name: price}
    $.n + $$.n
    $.items.id
    *.price
    o.*.d
    items.*[0]
    $count(**)
    $sort(items^(price), function($a, $b){$a.qty < $b.qty}).id
    $distinct(items.kind)
    $join(items.name, ', ')
    $keys(items[_S])
    _N > 3 ? _A : _A
    [_S, _N][_S]
    [[1,2],[3]][0][1]
    [1.._S].{'i': $}
    [nums, strs]
    {'l': items.id, 's': [items[0].id], 'm': items[9].id}
    items[tags].name
    items[$count(tags) = 1].name
    nums[_S]
    nums[[_S, _S]]
    nums[-1] ?? {}
    _L[_S] ?? 'none'
"""
