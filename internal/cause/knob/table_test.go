package knob

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// TestTable checks that every knob is complete.
func TestTable(t *testing.T) {
	id, line := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`), regexp.MustCompile(`^[ABCS]-\d\d$`)
	var ids []string
	for _, k := range Table() {
		if !id.MatchString(k.ID) || slices.Contains(ids, k.ID) {
			t.Errorf("bad or double id %q", k.ID)
		}
		ids = append(ids, k.ID)
		for what, text := range map[string]string{"title": k.Title, "about": k.About, "linux": k.Linux, "needs": k.Needs, "effect": k.Effect, "source": k.Source, "risk": k.Risk, "verify": k.Verify} {
			if text == "" || strings.ContainsAny(text, "\n\t") || strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s is %q", k.ID, what, text)
			}
		}
		for _, c := range k.Checklist {
			if !line.MatchString(c) {
				t.Errorf("%s: no line of the checklist: %q", k.ID, c)
			}
		}
		if len(k.Checklist) == 0 || k.Scope != OfHost && k.Scope != OfInterface && k.Scope != OfTest || !slices.Contains(k.Platforms(), "linux") {
			t.Errorf("half a knob: %+v", k)
		}
		if k.Cuts != strings.Contains(k.Risk, MayFlap) {
			t.Errorf("%s: may cut the connection: %v, risk: %s", k.ID, k.Cuts, k.Risk)
		}
		if found, ok := Find(k.ID); !ok || found.Title != k.Title {
			t.Errorf("%s is not found", k.ID)
		}
	}
	if _, ok := Find("no-such-knob"); ok {
		t.Error("a knob is found that there is not")
	}
}

// TestIDs: the table has each id of knob.go, and no other, and so does the sample.
func TestIDs(t *testing.T) {
	source, err := os.ReadFile("knob.go")
	if err != nil {
		t.Fatal(err)
	}
	var named, listed, sampled []string
	for _, m := range regexp.MustCompile(`(?m)^\t[A-Z]\w+ += "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1) {
		named = append(named, m[1])
	}
	for _, k := range Table() {
		listed = append(listed, k.ID)
	}
	for _, s := range sample() {
		sampled = append(sampled, s.knob)
	}
	slices.Sort(named)
	slices.Sort(listed)
	slices.Sort(sampled)
	if len(named) < 40 || !slices.Equal(named, listed) || !slices.Equal(named, sampled) {
		t.Errorf("named %q\nlisted %q\nsampled %q", named, listed, sampled)
	}
}

// TestPlatforms: every system that a knob claims has commands for it, and other systems report that they have
// none.
func TestPlatforms(t *testing.T) {
	for _, s := range sample() {
		k, _ := Find(s.knob)
		for _, os := range append(Systems(), "plan9", "") {
			iface := "eth0"
			if s.knob == RouteCongestion {
				iface = "default dev eth0"
			}
			w := By(os, nil, measure.Setting{Knob: s.knob, Interface: iface, Value: s.value}, s.before)
			claims := slices.Contains(k.Platforms(), os)
			if has := len(w.Set) > 0 || !strings.Contains(w.Words, "no command"); k.Scope != OfTest && has != claims {
				t.Errorf("%s, %q: claimed %v, worded %+v", s.knob, os, claims, w)
			}
		}
	}
}
