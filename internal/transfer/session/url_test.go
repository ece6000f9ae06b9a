package session

import (
	"strings"
	"testing"

	"thru/internal/fault"
)

func TestTransferURL(t *testing.T) {
	tests := []struct {
		text  string
		want  URL
		shown string
		fails string // part of the error; empty: it is read
	}{
		{"smb://anna@host/share/a/b", URL{"smb", "anna", "host", "", "share/a/b"}, "smb://anna@host/share/a/b", ""},
		{"SMB://host:4450/share/a%20b", URL{"smb", "", "host", "4450", "share/a b"}, "smb://host:4450/share/a%20b", ""},
		{"smb://[fd00::2]:445/s/f%3Fx", URL{"smb", "", "fd00::2", "445", "s/f?x"}, "smb://[fd00::2]:445/s/f%3Fx", ""},
		{"smb://anna:secret@host/share/a", URL{}, "", "a password does not belong"},
		{"ftp://anna:secret/1@host/a", URL{}, "", "not a URL"},
		{"ftp://anna:secret%@host/a", URL{}, "", "not a URL"},
		{"ftp://secret:12/3@host/a", URL{}, "", "an @ after the port"},
		{"ftp://host:21/a%40b", URL{"ftp", "", "host", "21", "a@b"}, "ftp://host:21/a%40b", ""},
		{"ftp://anna@host:21/a@b", URL{"ftp", "anna", "host", "21", "a@b"}, "ftp://anna@host:21/a@b", ""},
		{"smb1://host/share/a", URL{}, "", "thru refuses SMB1"},
		{"cifs://host/share/a", URL{}, "", "thru refuses SMB1"},
		{"thru://host:5201/srv/a", URL{"thru", "", "host", "5201", "srv/a"}, "thru://host:5201/srv/a", ""},
		{"thru://anna@host/srv/a", URL{}, "", "thru:// has no users"},
		{"thru://host//srv/a", URL{}, "", "slash"},
		{"gopher://host/a", URL{}, "", "unknown protocol"},
		{"host/a", URL{}, "", "not a URL"},
		{"/etc/passwd", URL{}, "", "not a URL"},
		{"", URL{}, "", "not a URL"},
		{"smb:share/a", URL{}, "", "not a URL"},
		{"smb:///share/a", URL{}, "", "not a URL"},
		{"smb://-oProxy/share/a", URL{}, "", "has no host"},
		{"smb://-l@host/share/a", URL{}, "", "has no host"},
		{"smb://host:99999/share/a", URL{}, "", "99999 is not a port"},
		{"smb://host/share/a?x=1", URL{}, "", "cannot have a query"},
		{"smb://host/share/../a", URL{}, "", ".."},
		{"smb://host/share/%2e%2e/a", URL{}, "", ".."},
		{"smb://host//share/a", URL{}, "", "slash"},
		{"smb://host/share/a%0ab", URL{}, "", "control character"},
		{"smb://host/share/" + strings.Repeat("x", 4096), URL{}, "", "longer"},
		{"smb://host/", URL{}, "", "has no file"},
		{"smb://host/share/folder/", URL{}, "", "folder"},
	}
	for _, tt := range tests {
		got, err := ParseURL(tt.text)
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) || fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
				t.Errorf("%.60q: %v (%d, hint %q), want %q", tt.text, err, fault.Code(err), fault.Hint(err), tt.fails)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: the error contains the password: %v", tt.text, err)
			}
			continue
		}
		if err != nil || got != tt.want || got.String() != tt.shown {
			t.Errorf("%q: %+v as %q, %v", tt.text, got, got, err)
		}
	}
}

func FuzzTransferURL(f *testing.F) {
	for _, s := range []string{"smb://anna@host/share/a", "ftp://[::1]:21/a%0ab", "sftp://a:b@c/d", "ftp://h:21/a%40b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseURL(text)
		if err != nil {
			return
		}
		again, err := ParseURL(u.String())
		if err != nil || again != u {
			t.Errorf("%q is shown as %q, which reads %+v, %v", text, u.String(), again, err)
		}
	})
}
