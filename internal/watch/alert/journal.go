package alert

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
)

// JournalSocket is where systemd's journal takes entries (systemd.io/JOURNAL_NATIVE_PROTOCOL).
const JournalSocket = "/run/systemd/journal/socket"

// Journal writes to systemd's journal.
func Journal(socket string) Sink {
	return Sink{Name: "journal", Send: func(ctx context.Context, m Message) error {
		c, err := new(net.Dialer).DialContext(ctx, "unixgram", socket)
		if err != nil {
			return fmt.Errorf("alert: %w", err)
		}
		defer c.Close()
		priority := "4" // warning
		if m.Over() {
			priority = "5"
		}
		var b []byte
		for _, f := range [][2]string{{"MESSAGE", m.title()}, {"PRIORITY", priority}, {"SYSLOG_IDENTIFIER", "thru"}, {"ALARM_ID", m.Alarm.ID}, {"ALARM_KIND", string(m.Alarm.Kind)}} {
			// A length instead of "=" lets a value have any bytes.
			b = binary.LittleEndian.AppendUint64(append(b, f[0]+"\n"...), uint64(len(f[1])))
			b = append(b, f[1]+"\n"...)
		}
		if _, err := c.Write(b); err != nil {
			return fmt.Errorf("alert: %w", err)
		}
		return nil
	}}
}
