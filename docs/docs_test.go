package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTopics checks that the index lists each page once, with a question or a name, and no missing page.
func TestTopics(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	topics := Topics()
	for _, page := range pages {
		topic := strings.TrimSuffix(page, ".md")
		if listed := slices.Contains(topics, topic); !listed && topic != Index {
			t.Errorf("%s does not list %s", Index, page)
		}
	}
	seen := map[string]bool{}
	for _, topic := range topics {
		if Page(topic) == "" || seen[topic] {
			t.Errorf("%s lists %q, which has no page or is there twice", Index, topic)
		}
		seen[topic] = true
	}
}

func TestSection(t *testing.T) {
	all := Section("receive-window")
	if len(all) < 2 || !strings.HasPrefix(all[0], "# causes: ") || strings.Contains(all[0], "\n#") {
		t.Errorf("receive-window has the sections %q", all)
	}
	if all := Section("no-such-cause"); all != nil {
		t.Errorf("an unknown id has the sections %q", all)
	}
	if !slices.Contains(IDs(), "mtu-black-hole") {
		t.Errorf("the ids %q lack mtu-black-hole", IDs())
	}
}

func TestMentions(t *testing.T) {
	if all := Mentions("Firewall", 3); len(all) != 3 || !slices.Contains(all, "gates") {
		t.Errorf("firewall is mentioned in %q", all)
	}
	if all := Mentions("no-such-word", 3); len(all) != 0 {
		t.Errorf("an absent word is mentioned in %q", all)
	}
}

// TestLength limits the length of the front pages.
func TestLength(t *testing.T) {
	for file, most := range map[string]int{"../README.md": 150, "../ARCHITECTURE.md": 120} {
		if n := strings.Count(read(t, file), "\n"); n > most {
			t.Errorf("%s has %d lines, at most %d", file, n, most)
		}
	}
	if info, err := os.Stat("page.png"); err != nil || info.Size() > 200_000 {
		t.Errorf("page.png: %v, at most 200 kB", info)
	}
}

// TestMap checks that the files named in ARCHITECTURE.md exist.
func TestMap(t *testing.T) {
	for _, m := range regexp.MustCompile("`(?:internal/)?([a-z0-9/_]+\\.go)`").FindAllStringSubmatch(read(t, "../ARCHITECTURE.md"), -1) {
		if _, err := os.Stat("../internal/" + m[1]); err != nil && strings.Contains(m[1], "/") {
			t.Errorf("ARCHITECTURE.md names %s: %v", m[1], err)
		}
	}
}

var (
	links   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks checks that each link between pages leads to a file, and its anchor to a heading there.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	front, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string][]string{}
	for _, page := range append(pages, front...) {
		headings[page] = anchors(read(t, page))
	}
	for page := range headings {
		for _, m := range links.FindAllStringSubmatch(read(t, page), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if anchor != "" && !slices.Contains(headings[file], anchor) {
				t.Errorf("%s links to %s: there is no such heading", page, m[1])
			}
		}
	}
}

// anchors returns the anchors that GitHub gives to the headings of a page.
func anchors(page string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		name := dropped.ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
