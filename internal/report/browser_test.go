package report

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	printing "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"thru/internal/measure"
)

// browser starts Chromium without its own network requests.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("THRU_REQUIRE_LAB") == "1" {
			t.Fatal("needs chromium:", err)
		}
		t.Skip("needs chromium:", err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	return ctx
}

// seen collects a page's requests and error messages.
type seen struct {
	mu          sync.Mutex
	asked, said []string
}

func (s *seen) hear(ev any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		s.asked = append(s.asked, e.Request.URL)
	case *runtime.EventExceptionThrown:
		s.said = append(s.said, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		s.said = append(s.said, string(e.Type))
	}
}

// colours sets the reader's preferred colour scheme, dark or light.
func colours(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

func listenTo() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, runtime.Enable, cdp.Empty{})
		return err
	})
}

// TestInABrowser looks at pages in one browser, each test in a tab of its own.
func TestInABrowser(t *testing.T) {
	ctx := browser(t)
	if err := chromedp.Do(ctx); err != nil { // the browser lives as long as the context that starts it
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, context.Context)
	}{{"report", reportInABrowser}, {"printed", printedReport}, {"worst", theWorstInABrowser}, {"compared", comparedInABrowser}} {
		t.Run(c.name, func(t *testing.T) {
			tab, stop := chromedp.NewContext(ctx)
			defer stop()
			c.test(t, tab)
		})
	}
}

// reportInABrowser: a report opens without network requests and errors; it has a heading, its charts have
// a size, nothing exceeds a phone's screen, and dark differs from light.
func reportInABrowser(t *testing.T, ctx context.Context) {
	var heard seen
	if err := chromedp.Listen(ctx, heard.hear); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, listenTo()); err != nil {
		t.Fatal(err)
	}
	docs := goldenDocuments()
	for i, name := range slices.Sorted(maps.Keys(docs)) {
		if testing.Short() && i%3 != 0 {
			continue
		}
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		lookAt(t, ctx, name, write(t, name, docs[name]))
		stop()
	}
	heard.mu.Lock()
	defer heard.mu.Unlock()
	for _, u := range heard.asked {
		if !strings.HasPrefix(u, "file://") {
			t.Errorf("the report asked for %s", u)
		}
	}
	if len(heard.asked) == 0 || len(heard.said) > 0 {
		t.Errorf("%d requests; the browser says %q", len(heard.asked), heard.said)
	}
}

func write(t *testing.T, name string, d *measure.Document) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".html")
	var b strings.Builder
	if err := HTML(&b, d, HTMLOptions{Signed: &Signature{Host: "alpha", Key: strings.Repeat("k", 60), Verify: "thru report --verify " + name}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// lookAt opens a page on a screen and on a phone.
func lookAt(t *testing.T, ctx context.Context, name, file string) {
	t.Helper()
	ask := func(script string) string {
		v, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+script+")"))
		if err != nil {
			t.Fatalf("%s: %s: %v", name, script, err)
		}
		return v
	}
	do := func(a ...chromedp.Action[chromedp.Void]) {
		if err := chromedp.Do(ctx, a...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	const background = `getComputedStyle(document.body).backgroundColor`
	do(colours("light"), chromedp.EmulateViewport(1100, 1600), chromedp.Navigate("file://"+file))
	if ask(`document.querySelector("h1").innerText.length > 5`) != "true" {
		t.Errorf("%s: no heading", name)
	}
	if ask(`[...document.querySelectorAll("svg[role=img]")].every(s => s.getBoundingClientRect().width >= 300)`) != "true" {
		t.Errorf("%s: a chart is too small to read", name)
	}
	light := ask(background)
	do(colours("dark"))
	if dark := ask(background); dark == light {
		t.Errorf("%s: dark is as light: %s", name, dark)
	}
	for _, wide := range []int64{390, 1280} {
		do(chromedp.EmulateViewport(wide, 800))
		if w := ask(`document.documentElement.scrollWidth - innerWidth`); w != "0" {
			t.Errorf("%s: %s pixels run out of a screen of %d", name, w, wide)
		}
	}
	do(onPaper())
	if n := ask(`[...document.querySelectorAll("details:not(.brief-print)")].filter(d => !d.closest(".brief-print")).filter(d => d.lastElementChild.getBoundingClientRect().height == 0).length`); n != "0" {
		t.Errorf("%s: %s parts stay closed on paper", name, n)
	}
	if back := ask(background); back != "rgb(255, 255, 255)" && back != "rgba(0, 0, 0, 0)" {
		t.Errorf("%s: paper is %s for who likes it dark", name, back)
	}
}

// onPaper emulates printing with a preferred dark scheme.
func onPaper() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: "print", Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
		})
		return err
	})
}

// printedReport: a report becomes a PDF of A4 pages, as many as it needs.
func printedReport(t *testing.T, ctx context.Context) {
	if err := chromedp.Do(ctx, listenTo()); err != nil {
		t.Fatal(err)
	}
	docs := goldenDocuments()
	for name, most := range map[string]int{"failed": 1, "verdict": 10, "check": 9, "mesh": 12, "tuned": 12} {
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		var pdf []byte
		err := chromedp.Do(ctx, chromedp.Navigate("file://"+write(t, name, docs[name])), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			r, err := cdp.Call(ctx, target, printing.PrintToPDF, printing.PrintToPDFParams{PreferCSSPageSize: new(true)})
			if err == nil {
				pdf = r.Data
			}
			return err
		}))
		stop()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := len(regexp.MustCompile(`/Type\s*/Page\b[^s]`).FindAll(pdf, -1)); n < 1 || n > most {
			t.Errorf("%s: %d pages, want at most %d", name, n, most)
		}
		if !regexp.MustCompile(`/MediaBox \[0 0 59[45]\.?\d* 84[12]`).Match(pdf) {
			t.Errorf("%s: the pages are not A4", name)
		}
	}
}

// theWorstInABrowser: pages of the largest and of hostile results run nothing, request nothing and stay
// within a screen.
func theWorstInABrowser(t *testing.T, ctx context.Context) {
	var heard seen
	if err := chromedp.Listen(ctx, heard.hear); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, listenTo()); err != nil {
		t.Fatal(err)
	}
	all := worst()
	for name, d := range all {
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		lookAt(t, ctx, name, write(t, name, d))
		stop()
	}
	heard.mu.Lock()
	defer heard.mu.Unlock()
	if len(heard.asked) != len(all) || len(heard.said) > 0 {
		t.Errorf("asked for %q; the browser says %q", heard.asked, heard.said)
	}
}
