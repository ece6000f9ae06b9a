package cli

import (
	"strings"
	"testing"

	"thru/internal/fault"
)

func TestTransferURL(t *testing.T) {
	tests := []struct {
		text  string
		want  transferURL
		shown string
		fails string // part of the error; empty: it is read
	}{
		{"smb://anna@host/share/a/b", transferURL{"smb", "anna", "host", "", "share/a/b"}, "smb://anna@host/share/a/b", ""},
		{"SMB://host:4450/share/a%20b", transferURL{"smb", "", "host", "4450", "share/a b"}, "smb://host:4450/share/a%20b", ""},
		{"smb://[fd00::2]:445/s/f%3Fx", transferURL{"smb", "", "fd00::2", "445", "s/f?x"}, "smb://[fd00::2]:445/s/f%3Fx", ""},
		{"smb://anna:secret@host/share/a", transferURL{}, "", "a password does not belong"},
		{"ftp://anna:secret/1@host/a", transferURL{}, "", "no URL"},
		{"ftp://anna:secret%@host/a", transferURL{}, "", "no URL"},
		{"ftp://secret:12/3@host/a", transferURL{}, "", "an @ stands behind a port"},
		{"ftp://host:21/a%40b", transferURL{"ftp", "", "host", "21", "a@b"}, "ftp://host:21/a%40b", ""},
		{"ftp://anna@host:21/a@b", transferURL{"ftp", "anna", "host", "21", "a@b"}, "ftp://anna@host:21/a@b", ""},
		{"smb1://host/share/a", transferURL{}, "", "SMB1 is refused"},
		{"cifs://host/share/a", transferURL{}, "", "SMB1 is refused"},
		{"thru://host:5201/srv/a", transferURL{"thru", "", "host", "5201", "srv/a"}, "thru://host:5201/srv/a", ""},
		{"thru://anna@host/srv/a", transferURL{}, "", "thru:// has no users"},
		{"thru://host//srv/a", transferURL{}, "", "slash"},
		{"gopher://host/a", transferURL{}, "", "no client speaks"},
		{"host/a", transferURL{}, "", "no URL"},
		{"/etc/passwd", transferURL{}, "", "no URL"},
		{"", transferURL{}, "", "no URL"},
		{"smb:share/a", transferURL{}, "", "no URL"},
		{"smb:///share/a", transferURL{}, "", "no URL"},
		{"smb://-oProxy/share/a", transferURL{}, "", "names no host"},
		{"smb://-l@host/share/a", transferURL{}, "", "names no host"},
		{"smb://host:99999/share/a", transferURL{}, "", "port 99999"},
		{"smb://host/share/a?x=1", transferURL{}, "", "no query"},
		{"smb://host/share/../a", transferURL{}, "", ".."},
		{"smb://host/share/%2e%2e/a", transferURL{}, "", ".."},
		{"smb://host//share/a", transferURL{}, "", "slash"},
		{"smb://host/share/a%0ab", transferURL{}, "", "control character"},
		{"smb://host/share/" + strings.Repeat("x", 4096), transferURL{}, "", "longer"},
		{"smb://host/", transferURL{}, "", "names no file"},
		{"smb://host/share/folder/", transferURL{}, "", "folder"},
	}
	for _, tt := range tests {
		got, err := parseTransferURL(tt.text)
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) || fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
				t.Errorf("%.60q: %v (%d, hint %q), want %q", tt.text, err, fault.Code(err), fault.Hint(err), tt.fails)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: the error tells the password: %v", tt.text, err)
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
		u, err := parseTransferURL(text)
		if err != nil {
			return
		}
		again, err := parseTransferURL(u.String())
		if err != nil || again != u {
			t.Errorf("%q is shown as %q, which reads %+v, %v", text, u.String(), again, err)
		}
	})
}
