package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"thru/internal/doc"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/report/fleet"
	"thru/internal/report/result"
)

// The elements of JUnit XML that pipelines read, as in the schemas of Jenkins and GitLab.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Seconds  string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Began    string      `xml:"timestamp,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Seconds string   `xml:"time,attr"`
	Failure *junitNo `xml:"failure"`
	Error   *junitNo `xml:"error"`
	Skipped *junitNo `xml:"skipped"`
	Out     string   `xml:"system-out,omitempty"`
}

// junitNo is why a case has not passed.
type junitNo struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit prints what passed and what failed, for the test reports of a pipeline: a case for each flow (an
// error if it failed), for the verdict and each rung that has one (a failure; an error if inconclusive), for
// each target of a plan, and for each gate (skipped if not checked). A command that stopped early is an
// error, too.
func JUnit(w io.Writer, d *measure.Document) error {
	x := junitSuites{Name: doc.Clean("thru " + d.Command), Seconds: seconds(d.ElapsedNs)}
	began := d.StartedAt.UTC().Format("2006-01-02T15:04:05")
	for _, s := range []junitSuite{
		{Name: "command", Cases: junitCommand(d)}, {Name: "verdict", Cases: junitVerdicts(d)}, {Name: "targets", Cases: junitTargets(d)},
		{Name: "flows", Cases: junitFlows(d)}, {Name: "gates", Cases: junitGates(d)},
	} {
		if len(s.Cases) == 0 {
			continue
		}
		s.Began = began
		for i := range s.Cases {
			c := &s.Cases[i]
			c.Class = "thru." + s.Name
			c.Seconds = cmp.Or(c.Seconds, "0")
			s.Tests++
			s.Failures += one(c.Failure)
			s.Errors += one(c.Error)
			s.Skipped += one(c.Skipped)
		}
		x.Tests, x.Failures, x.Errors, x.Skipped = x.Tests+s.Tests, x.Failures+s.Failures, x.Errors+s.Errors, x.Skipped+s.Skipped
		x.Suites = append(x.Suites, s)
	}
	text, err := xml.MarshalIndent(x, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	}
	if err != nil {
		return fmt.Errorf("report: writing JUnit XML: %w", err)
	}
	return nil
}

func one(n *junitNo) int {
	if n == nil {
		return 0
	}
	return 1
}

func seconds(ns int64) string { return fmt.Sprintf("%.3f", time.Duration(ns).Seconds()) }

// no returns why a case has not passed, with hints below.
func no(why string, more ...string) *junitNo {
	why = doc.Reason(why)
	var lines []string
	for _, s := range more {
		if s != "" {
			lines = append(lines, doc.Clean(s))
		}
	}
	return &junitNo{doc.Clean(why), strings.Join(lines, "\n")}
}

// junitCommand returns the case of the command itself: whether it completed.
func junitCommand(d *measure.Document) []junitCase {
	c := junitCase{Name: doc.Clean(strings.Join(append([]string{"thru"}, d.Arguments...), " ")), Seconds: seconds(d.ElapsedNs), Out: Answer(d)}
	if d.BrokeOff() && d.Error.ExitCode != fault.Inconclusive {
		c.Error = no(d.Error.Message, d.Error.Hint)
	}
	return []junitCase{c}
}

func junitVerdicts(d *measure.Document) (all []junitCase) {
	judge := func(name string, v *measure.Verdict) {
		c := junitCase{Name: doc.Clean(name), Out: doc.Clean(v.Reason)}
		switch {
		case v.Inconclusive:
			c.Error = no("inconclusive: "+v.Reason, v.Do)
		case !v.Pass:
			c.Failure = no(v.Reason)
		}
		all = append(all, c)
	}
	if d.Verdict != nil {
		judge("all", d.Verdict)
	}
	if d.Ladder != nil {
		for _, r := range d.Ladder.Rungs {
			if r.Verdict != nil {
				judge(r.Name, r.Verdict)
			}
		}
	}
	return all
}

func junitTargets(d *measure.Document) (all []junitCase) {
	for i, r := range fleet.TargetTable(d).Rows {
		missed := i < fleet.FailedTargets(d) // they come first
		c := junitCase{Name: r[0], Out: doc.Join("wanted "+r[1], "got "+r[2])}
		why := no(doc.Join("wanted "+r[1], "got "+r[2]), r[4])
		switch {
		case missed && d.Verdict != nil && d.Verdict.Inconclusive:
			c.Error = why
		case missed:
			c.Failure = why
		}
		all = append(all, c)
	}
	return all
}

// junitFlows returns the cases of the flows without experiments, baselines and probes.
func junitFlows(d *measure.Document) (all []junitCase) {
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Baseline || result.IsExperiment(c) || result.IsGauge(d, c) {
			continue
		}
		x := junitCase{Name: doc.Join(doc.Clean(c.Rung), result.PathName(c), result.What(c), result.SetName(result.Conditions(c.Axes), "")), Out: result.FigureText(c)}
		span := int64(0)
		for _, r := range c.Runs {
			for _, f := range r.Flows {
				if f.Receiver != nil {
					span += f.Receiver.MeasuredNs
				}
			}
		}
		x.Seconds = seconds(span)
		if c.Error != nil {
			x.Error = no(c.Error.Message, c.Error.Hint)
		}
		all = append(all, x)
	}
	return all
}

func junitGates(d *measure.Document) (all []junitCase) {
	for _, g := range d.Gates {
		where := doc.Clean(g.EndPoint)
		if g.From != "" {
			where = doc.Clean(g.From + " -> " + g.To)
		}
		c := junitCase{Name: doc.Join(doc.Clean(g.ID), where, doc.Clean(g.Interface)), Out: doc.Clean(g.Fact)}
		switch g.Status {
		case measure.GateFail:
			c.Failure = no(g.Fact, append([]string{g.Why, g.Advice}, g.Fix...)...)
		case measure.GateNotChecked:
			c.Skipped = no(g.Fact)
		}
		all = append(all, c)
	}
	return all
}
