package cli

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"thru/docs"
	"thru/internal/doc/text"
	"thru/internal/fault"
)

type helpCmd struct {
	Topic []string `arg:"" optional:"" help:"A page, a command, or a cause, gate or knob by its id."`
}

// Run prints the pages of a topic, or the options of a command without a page.
func (c *helpCmd) Run(_ context.Context, e *env) error {
	topic := strings.TrimSuffix(strings.Join(c.Topic, " "), ".md")
	pages := pagesOf(topic)
	isCommand := len(c.Topic) > 0 && commands()[c.Topic[0]] != ""
	if len(pages) == 0 && isCommand {
		_, err := e.line.Parse(append(c.Topic, "--help"))
		return err
	}
	if len(pages) == 0 {
		return unknownTopic(topic, slices.Concat(docs.Topics(), slices.Sorted(maps.Keys(commands())), docs.IDs()))
	}
	if isCommand {
		pages = append(pages, "Its options: thru "+topic+" --help")
	}
	width, colour := e.Terminal()
	p := text.New(text.Options{Width: width, Colour: colour})
	for _, page := range pages {
		p.Page(page, referTo)
		p.WriteByte('\n')
	}
	return p.Flush(e.Out)
}

// mostMentions limits the pages that a hint names.
const mostMentions = 4

// unknownTopic suggests a similar topic, or the pages that contain the word.
func unknownTopic(topic string, known []string) error {
	hint := "thru help lists the topics"
	if near := fault.Nearest(topic, known); near != "" {
		hint = "did you mean thru help " + near + "? " + hint
	} else if pages := docs.Mentions(topic, mostMentions); len(pages) > 0 {
		hint = "pages with that word: " + strings.Join(pages, ", ") + "; " + hint
	}
	return fault.Usagef(hint, "there is no help about %q", topic)
}

// pagesOf returns the pages of a topic: a page by its name, or the sections of an id.
func pagesOf(topic string) []string {
	topic = cmp.Or(topic, docs.Index)
	if page := docs.Page(topic); page != "" {
		return []string{page}
	}
	return docs.Section(topic)
}

// referTo words a link; a link to a page becomes the command that prints it.
func referTo(name, target string) string {
	target, _, _ = strings.Cut(target, "#")
	topic, isPage := strings.CutSuffix(target, ".md")
	switch {
	case !isPage || docs.Page(topic) == "":
		return name
	case path.Base(name) == target || name == topic:
		return "`thru help " + topic + "`"
	default:
		return name + " (thru help " + topic + ")"
	}
}
