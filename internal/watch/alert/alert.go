// Package alert sends the alarms of a watch to people and their systems: Alertmanager, a webhook, a program, mail, the journal.
//
// An Outbox keeps what could not be sent, bounded and across restarts, and tries again, so that neither a restart nor an outage of a sink loses an alarm. A
// sink may get a message twice, since an answer can be lost; each message has the alarm's ID, and the time of what it reports.
package alert

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/watch/record"
)

// Message is an alarm that was raised, updated, or is over (its End is set).
type Message struct {
	Schema string       `json:"schema"` // record.Schema
	At     time.Time    `json:"at"`
	Text   string       `json:"text"` // the alarm in a sentence
	Alarm  record.Alarm `json:"alarm"`
}

// Over reports whether the alarm is over.
func (m Message) Over() bool { return !m.Alarm.End.IsZero() }

// title returns the text, marked if the alarm is over.
func (m Message) title() string {
	if m.Over() {
		return "over: " + m.Text
	}
	return m.Text
}

// Sink takes messages. Name identifies it in the outbox and in errors.
type Sink struct {
	Name    string
	Send    func(ctx context.Context, m Message) error
	repeats bool // it ends alarms that are not sent again
}

// sendTime bounds one attempt.
const sendTime = 20 * time.Second

// PostJSON posts a value as JSON and wants a status of 2xx.
func PostJSON(ctx context.Context, url string, value any, sign func(body []byte, header http.Header)) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("alert: %w", err)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("alert: %w", err)
	}
	q.Header.Set("Content-Type", "application/json")
	if sign != nil {
		sign(body, q.Header)
	}
	reply, err := http.DefaultClient.Do(q)
	if err != nil {
		return fmt.Errorf("alert: %w", err)
	}
	defer reply.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(reply.Body, 300)) // the status alone decides
	if reply.StatusCode/100 != 2 {
		return fault.Failf("is it the right address, and does it accept thru's messages?", "alert: %s answers %s %s", q.URL.Redacted(), reply.Status, strings.TrimSpace(string(text)))
	}
	return nil
}

// alertLasts is how long an alert lasts at Alertmanager if it is not sent again.
const alertLasts = 5 * repeatEvery

// Alertmanager sends to Prometheus' Alertmanager by its API, version 2. It ends an alert that is not sent again, and knows an alert by its labels, so that they are
// those of the moment when the alarm was raised.
func Alertmanager(url string) Sink {
	send := func(ctx context.Context, m Message) error {
		x := m.Alarm
		labels := map[string]string{"alertname": "thru_" + string(x.Kind), "alarm": x.ID, "severity": "warning"}
		maps.Copy(labels, x.Labels)
		if x.Kind == record.KindOutage {
			labels["severity"] = "critical"
		}
		end := m.At.Add(alertLasts)
		if m.Over() {
			end = x.End
		}
		// summary and description are what Alertmanager's own templates show.
		notes := map[string]string{"summary": m.Text, "pairs": fmt.Sprint(len(x.Pairs))}
		if len(x.Findings) > 0 {
			notes["description"] = x.Findings[0].Summary
		}
		return PostJSON(ctx, strings.TrimSuffix(url, "/")+"/api/v2/alerts", []any{map[string]any{
			"labels": labels, "annotations": notes, "startsAt": x.Since.Format(time.RFC3339Nano), "endsAt": end.Format(time.RFC3339Nano), "generatorURL": x.Link,
		}}, nil)
	}
	return Sink{"alertmanager " + url, send, true}
}

// Webhook posts the message as JSON. With a key, the header Thru-Signature has "sha256=" and the HMAC-SHA-256 of the body in hexadecimal.
func Webhook(url string, key []byte) Sink {
	return Sink{Name: "webhook " + url, Send: func(ctx context.Context, m Message) error {
		return PostJSON(ctx, url, m, func(body []byte, header http.Header) {
			header.Set("Thru-Alarm", m.Alarm.ID)
			if len(key) > 0 {
				h := hmac.New(sha256.New, key)
				h.Write(body)
				header.Set("Thru-Signature", "sha256="+hex.EncodeToString(h.Sum(nil)))
			}
		})
	}}
}

// Program runs a program with the message as JSON on stdin.
func Program(args ...string) Sink {
	return Sink{Name: "exec " + strings.Join(args, " "), Send: func(ctx context.Context, m Message) error {
		body, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("alert: %w", err)
		}
		return run(ctx, append(body, '\n'), args...)
	}}
}

// run runs a program.
func run(ctx context.Context, in []byte, args ...string) error {
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Stdin = bytes.NewReader(in)
	c.WaitDelay = time.Second // for what it has started
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("alert: running %s: %w: %.200s", args[0], err, bytes.TrimSpace(out))
	}
	return nil
}

// Mail sends mail by the system's sendmail(8).
func Mail(to string) Sink {
	return Sink{Name: "mail " + to, Send: func(ctx context.Context, m Message) error {
		program := "sendmail"
		if _, err := exec.LookPath(program); err != nil {
			program = "/usr/sbin/sendmail" // not in the path of users
		}
		return run(ctx, letter(to, m), program, "-t", "-oi")
	}}
}

// letter returns a mail.
func letter(to string, m Message) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "To: %s\nSubject: %s\nDate: %s\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n", oneLine(to),
		mime.QEncoding.Encode("utf-8", oneLine("thru: "+m.title())), m.At.Format(time.RFC1123Z))
	fmt.Fprintln(&b, m.Text)
	for _, f := range m.Alarm.Findings {
		fmt.Fprintf(&b, "\n%s: %s\n", f.Cause, f.Summary)
	}
	for _, f := range m.Alarm.Facts {
		fmt.Fprintf(&b, "\nchanged at %s: %s was %s, is %s\n", f.Host, cmp.Or(f.Name, f.Fact), f.Before, f.After)
	}
	fmt.Fprintf(&b, "\nsince %s\n", m.Alarm.Since.Format(time.RFC1123))
	if m.Alarm.Link != "" {
		fmt.Fprintln(&b, m.Alarm.Link)
	}
	return b.Bytes()
}

// oneLine removes what would begin another header.
func oneLine(s string) string {
	if len(s) > 400 {
		s = s[:400]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
