package html

import (
	"testing"
)

// TestDress: plain text gets arrows and typed commands; text to paste and hidden text stay as they are.
func TestDress(t *testing.T) {
	for in, want := range map[string]string{
		"<p>a -&gt; b</p>":                            "<p>a → b</p>",
		"<p>see `thru check` and `x`</p>":             "<p>see <code>thru check</code> and <code>x</code></p>",
		"<pre><code>echo `a` -&gt; b</code></pre> a":  "<pre><code>echo `a` -&gt; b</code></pre> a",
		"<svg><text x=\"1\">a -&gt; `b`</text></svg>": "<svg><text x=\"1\">a → b</text></svg>",
		"<title>`a` -&gt; b</title><p>`c`</p>":        "<title>a → b</title><p><code>c</code></p>",
		"<br/>one ` alone<b>`</b>":                    "<br/>one ` alone<b>`</b>",
		"<style>a > b {}</style>`c`":                  "<style>a > b {}</style><code>c</code>",
		"no element `at all`":                         "no element <code>at all</code>",
		"<p title=\"a -&gt; `b`\">c</p>":              "<p title=\"a → `b`\">c</p>",
		"<p>measure it 5 times (--repeat 5)</p>":      "<p>measure it 5 times (<code class=\"flag\">--repeat</code> 5)</p>",
		"<p>leave -w out, -3.3% -x86</p>":             "<p>leave <code class=\"flag\">-w</code> out, -3.3% -x86</p>",
		"<title>--repeat</title><code>--t</code>":     "<title>--repeat</title><code>--t</code>",
		"<pre><code>thru -t 5</code></pre> -t":        "<pre><code>thru <span class=\"flag\">-t</span> 5</code></pre> <code class=\"flag\">-t</code>",
		"<style>a -b --c</style>":                     "<style>a -b --c</style>",
		"<p>cut <":                                    "<p>cut <",
		"<template>`x` -&gt;</template> -&gt;":        "<template>`x` -&gt;</template> →",
	} {
		if got := string(dress([]byte(in))); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}
