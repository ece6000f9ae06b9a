package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"thru/internal/store/postgres/postgrestest"
)

// TestArchive: the commands of thru history on the database of a team, whose password is nowhere to be read.
func TestArchive(t *testing.T) {
	server := postgrestest.Start(t)
	name := server.Database(t)
	server.Exec(t, name, "CREATE ROLE ann LOGIN PASSWORD 'hunter2/:@'; GRANT ALL ON DATABASE "+name+" TO ann")
	data := t.TempDir()
	for key, value := range map[string]string{"HOME": data, "XDG_DATA_HOME": data, "XDG_CONFIG_HOME": data + "/config", "THRU_NO_STORE": "", "THRU_STORE": ""} {
		t.Setenv(key, value)
	}
	url := server.TCP("ann:hunter2%2F%3A%40", name, "sslmode=require")
	run := func(code int, want string, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		got := Main(args, strings.NewReader(""), &out, &errs)
		all := out.String() + errs.String()
		if got != code || !strings.Contains(all, want) {
			t.Errorf("thru %q: exit code %d, want %d and %q:\n%s", args, got, code, want, all)
		}
		if strings.Contains(all, "hunter2") {
			t.Errorf("thru %q shows the password:\n%s", args, all)
		}
		return out.String()
	}
	run(1, "hint: have its owner run thru history migrate", "history", "--store", url)
	run(2, "no database is named", "history", "migrate")
	run(2, "not one of a database", "history", "--store", url+"&sslmode=maybe")
	run(0, "has version 1 now", "history", "migrate", "--store", url)
	run(0, "has version 1 already", "history", "migrate", "--store", url)
	run(0, "No result", "history", "--store", url)

	t.Setenv("THRU_STORE", url)
	run(0, "***", "config")
	run(0, "stored: ", "check", "--label", "site=fra")
	run(0, "site=fra", "history", "FRA")
	list := run(0, `"more": false`, "history", "--json")
	var found struct {
		Results []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(list), &found); err != nil || len(found.Results) != 1 {
		t.Fatalf("%v: %s", err, list)
	}
	id := found.Results[0].ID
	run(0, `"command": "check"`, "report", "--json", id[:12])
	backup := filepath.Join(data, "backup.jsonl")
	run(0, "1 result written", "history", "export", backup)
	run(0, "1 result removed", "history", "rm", "--yes", id)
	run(0, "1 result imported", "history", "import", backup)
	run(0, "0 results removed", "history", "prune", "--yes", "--keep", "5")

	server.Stop(t)
	run(1, "the server does not answer", "history")
	out := run(0, "the result waits in "+data, "check", "--json")
	if strings.Contains(out, "waits") {
		t.Errorf("a warning is in the document: %s", out)
	}
	server.Run(t)
	run(0, "1 result that waited: sent to the database", "check")
	run(0, "", "history", "--json")
	if got := server.Exec(t, name, "SELECT count(*) FROM thru.results"); got[0] != "3" {
		t.Errorf("%s results", got)
	}
}
