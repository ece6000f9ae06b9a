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
		"ssh://root@esx2 -> crew/kvm3":          "name-4 -> name-6", // hosts of them: esx2, crew, kvm3
		"esx2: kvm3 of crew, root@esx2":         "name-5: name-8 of name-7, user@name-5",
		"127.0.0.1, ::1, 0.0.0.0, 224.0.0.1":    "127.0.0.1, ::1, 0.0.0.0, 224.0.0.1",
		"/home/ann/x.html, /var/log":            "/home/user/x.html, /var/log",
		"ssh ann@web1":                          "ssh user@name-1",
		"sftp://ann:hunter2@web1/x":             "sftp://***@name-1/x",
		"thru1." + strings.Repeat("ab", 30):     "thru1.***",
		"kernel 6.12.1, 2.5G, a.b.c, 300.1.1.1": "kernel 6.12.1, 2.5G, a.b.c, 300.1.1.1",
	} {
		r := New(false)
		r.Name("web1", "db.example.com", "local", "", "10.9.9.9", "ssh://root@esx2", "crew/kvm3")
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

// TestHostile: names, addresses and secrets stand where no key tells them, beside letters and signs that hide them.
func TestHostile(t *testing.T) {
	const journal = `2026-11-28T12:00:01+0000 gw9 thru[7]: + secret-db  site=geheim  dept=Köln Ost  10.20.30.1  4 CPUs  thru 1.0
2026-11-28T12:00:02+0000 gw9 thru[7]: - secret-gone is offline
2026-11-28T12:00:03+0000 gw9 thru[7]: ! a host that calls itself secret-twin is refused: another key
2026-11-28T12:00:04+0000 gw9 thru[7]: serves under secret-fleet at 10.20.30.9:5200 as secret-own; ready
2026-11-28T12:00:05+0000 gw9 thru[7]: dial tcp: lookup secret-lost: no such host; from:fd00:77::7. to fd00:77::8: refused
2026-11-28T12:00:06+0000 gw9 thru[7]: /export/home/q.secret-home/x, C:\Users\secret-win\x, file://secret-nas/x, sftp://secret-ann@secret-ftp/x
2026-11-28T12:00:07+0000 gw9 thru[7]: mail to secret-bob@mail.secret-corp.com; api.secret-cloud.net; host_10.20.30.4_x; ::ffff:10.20.30.5
2026-11-28T12:00:08+0000 gw9 thru[7]: {"event":"host","host":{"name":"secret-json","labels":{"rack":"secret-rack"}},"text":"+ secret-json"}
2026-11-28T12:00:09+0000 gw9 thru[7]: {"event":"host", half a line
2026-11-28T12:00:10+0000 gw9 thru[7]: token=secret-token-1 "password":"secret-word" Authorization: Bearer secret-bearer
2026-11-28T12:00:11+0000 gw9 thru[7]: eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2VjcmV0LXNpZ25hdHVyZQ 5254.00ab.cdef
2026-11-28T12:00:12+0000 gw9 thru[7]: key UBZ4KRCMTQ2YPGVC5PWE2N6OEVY2TLXSFWLX3ZDUTQ5YNN2DGA2LHRXQ, 9f86d081-884c-4d63-a159-19d1f0a1c2d3
2026-11-28T12:00:13+0000 gw9 thru[7]: secret-db_eth0.pcap, 東京-7 and GEHEIM, secret-gonexyz
2026-11-28T12:00:14+0000 gw9 thru[7]: BIOS 6.7.0.20190802001
2026-11-28T12:00:15+0000 gw9 thru[7]: -----BEGIN RSA PRIVATE KEY-----
2026-11-28T12:00:15+0000 gw9 thru[7]: DEK-Info: AES-128-CBC,00
2026-11-28T12:00:15+0000 gw9 thru[7]: c2VjcmV0LXJzYQ
2026-11-28T12:00:15+0000 gw9 thru[7]: -----END RSA PRIVATE KEY-----
-----BEGIN OPENSSH PRIVATE KEY-----
c2VjcmV0LWtleQ
-----END OPENSSH PRIVATE KEY-----`
	document := `{"schema":"thru.result/2","end_points":[{"name":"東京-7","labels":{"secret-json":"x"},"facts":{"hostname":"gw9"}}],"summary":"12:34:56 at 東京-7, 5 of 7 streams"}`
	parts := []Part{{Name: "journal.txt", Value: journal}, {Name: "a.json", Value: new(json.RawMessage(document))}}
	if err := New(false).Redact(parts); err != nil {
		t.Fatal(err)
	}
	all := string(parts[0].Text) + string(parts[1].Text)
	for _, secret := range []string{
		"secret-db", "geheim", "Köln", "10.20.30.", "secret-gone ", "secret-twin", "secret-fleet", "secret-own", "secret-lost", "fd00:77", "secret-home", "secret-win",
		"secret-nas", "secret-ann", "secret-ftp", "secret-bob", "secret-corp", "secret-cloud", "secret-json", "secret-rack", "secret-token", "secret-word", "secret-bearer",
		"eyJ", "5254", "UBZ4", "9f86d081", "東京", "GEHEIM", "c2VjcmV0LWtleQ", "c2VjcmV0LXJzYQ", "gw9",
	} {
		if strings.Contains(all, secret) {
			t.Errorf("%s is in\n%s", secret, all)
		}
	}
	for _, stays := range []string{"12:34:56 at name-", "5 of 7 streams", "no such host", "_eth0.pcap", "secret-gonexyz", "half a line", "4 CPUs", "BIOS 6.7.0.20190802001"} {
		if !strings.Contains(all, stays) {
			t.Errorf("%s is not in\n%s", stays, all)
		}
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
