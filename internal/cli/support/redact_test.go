package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"web1 -> db.example.com: 956 Mb/s":      "name-1 -> name-2: 956 Mb/s",
		"WEB1, web10 and db":                    "name-1, web10 and db", // a part of two letters is a word
		"10.1.2.3:5200 and 10.1.2.3":            "198.18.0.2:5200 and 198.18.0.2",
		"[fd00::7]:5200, fe80::1%eth0":          "[2001:db8::3]:5200, 2001:db8::4%eth0",
		"52:54:00:AB:cd:ef at 12:34:56":         "02:00:00:00:00:01 at 12:34:56",
		"ssh://root@esx2 -> fleet/kvm3":         "name-4 -> name-6", // hosts of them: esx2, fleet, kvm3
		"esx2: kvm3 of fleet, root@esx2":        "name-5: name-8 of name-7, user@name-5",
		"127.0.0.1, ::1, 0.0.0.0, 224.0.0.1":    "127.0.0.1, ::1, 0.0.0.0, 224.0.0.1",
		"/home/ann/x.html, /var/log":            "/home/user/x.html, /var/log",
		"ssh ann@web1":                          "ssh user@name-1",
		"sftp://ann:hunter2@web1/x":             "sftp://***@name-1/x",
		"thru1." + strings.Repeat("ab", 30):     "thru1.***",
		"kernel 6.12.1, 2.5G, a.b.c, 300.1.1.1": "kernel 6.12.1, 2.5G, a.b.c, 300.1.1.1",
	} {
		r := New(false)
		r.Name("web1", "db.example.com", "local", "", "10.9.9.9", "ssh://root@esx2", "fleet/kvm3")
		r.Text("10.1.2.3 fd00::7 fe80::1 52:54:00:ab:cd:ef", &Removed{}) // numbers them
		if got := r.Text(text, &Removed{}); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	r := New(true)
	if got := r.Text("10.1.2.3", &Removed{}); got != "10.1.2.3" {
		t.Errorf("--keep-addresses: %s", got)
	}
}

// TestShortNames checks that names too short to be replaced within texts count nothing there.
func TestShortNames(t *testing.T) {
	r, n := New(false), Removed{}
	r.Name("db")
	if got := r.Text("a db, two words", &n); got != "a db, two words" || n != (Removed{}) {
		t.Errorf("%q, %+v", got, n)
	}
}

// TestJSON: names are known by their keys, and replaced wherever they stand; thru's own words stay.
func TestJSON(t *testing.T) {
	const text = `{"schema":"thru.result/2","command":"test","end_points":[{"name":"test","facts":{"hostname":"esx-7","interfaces":[{"name":"eth0","mac":"52:54:00:12:34:56"}]},"labels":{"site":"fra"}}],
		"cells":[{"from":"local","to":"test"}],"findings":[{"cause":"receive-window","summary":"esx-7 (fra) limits eth0"}],"n":12345678901234567890}`
	parts := []Part{{Name: "note.txt", Value: "seen at fra"}, {Name: "a.json", Value: new(json.RawMessage(text))}}
	if err := New(false).Redact(parts); err != nil {
		t.Fatal(err)
	}
	out, n := bytes.ReplaceAll(parts[1].Text, []byte(`": `), []byte(`":`)), parts[1].Removed
	if note := string(parts[0].Text); !strings.HasPrefix(note, "seen at name-") {
		t.Errorf("the note is %q", note)
	}
	for _, want := range []string{`"command":"test"`, `"name":"eth0"`, `"from":"local"`, `"n":12345678901234567890`, `"cause":"receive-window"`, `"mac":"02:00:00:00:00:01"`} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
	for _, secret := range []string{"esx-7", "fra", `"to":"test"`, "52:54"} {
		if bytes.Contains(out, []byte(secret)) {
			t.Errorf("%s is in %s", secret, out)
		}
	}
	if n.Names != 6 || n.Addresses != 1 || n.Secrets != 0 {
		t.Errorf("counted %+v", n)
	}
}

func TestArchive(t *testing.T) {
	text, err := Archive("thru-support", []Part{{Name: "a.json", Text: []byte("{}\n")}, {Name: "b.txt", Text: []byte("x")}}, time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		got += h.Name + "=" + string(b) + ";"
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := "thru-support/a.json={}\n;thru-support/b.txt=x;"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzText: what was redacted has nothing left to redact, and no text makes it panic.
func FuzzText(f *testing.F) {
	for _, s := range []string{"web1 10.1.2.3", "fe80::1%eth0", "aa-bb-cc-dd-ee-ff", "/home/x/y", "a:b@c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := New(false)
		r.Name("web1", "a b", "(x)")
		got := r.Text(text, &Removed{})
		if strings.Contains(" "+strings.ToLower(got)+" ", " web1 ") {
			t.Fatalf("%q has a name: %q", text, got)
		}
	})
}
