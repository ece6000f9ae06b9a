package alert

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
)

// journalSocket is where systemd's journal takes entries (systemd.io/JOURNAL_NATIVE_PROTOCOL).
const journalSocket = "/run/systemd/journal/socket"

// Journal writes to systemd's journal.
type Journal struct{ Socket string } // empty: the system's

// Name implements Sink.
func (Journal) Name() string { return "journal" }

// Send implements Sink.
func (j Journal) Send(ctx context.Context, m Message) error {
	socket := j.Socket
	if socket == "" {
		socket = journalSocket
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unixgram", socket)
	if err != nil {
		return fmt.Errorf("alert: %w", err)
	}
	defer c.Close()
	text, priority := m.Text, "4" // warning
	if m.Over() {
		text, priority = "over: "+text, "5"
	}
	var b strings.Builder
	for _, f := range [][2]string{{"MESSAGE", text}, {"PRIORITY", priority}, {"SYSLOG_IDENTIFIER", "thru"}, {"ALARM_ID", m.Alarm.ID}, {"ALARM_KIND", string(m.Alarm.Kind)}} {
		// A length instead of "=" lets a value have any bytes.
		b.WriteString(f[0] + "\n")
		b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(f[1]))))
		b.WriteString(f[1] + "\n")
	}
	if _, err := c.Write([]byte(b.String())); err != nil {
		return fmt.Errorf("alert: %w", err)
	}
	return nil
}
