package report

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"thru/internal/measure"
)

// pivot is the script of docs/page.md, with checks of its result.
const pivot = `
import pandas, sys
rows = pandas.read_csv(sys.argv[1])
table = rows[rows.scope == "cell"].pivot_table(index=["rung", "direction", "streams"], columns="window", values="goodput_bps")
assert not rows[["cell", "rung", "from", "to", "direction", "streams", "window", "length", "scope"]].isna().any().any(), rows.isna().any()
print(*table.columns, sep=",")
for key, row in table.iterrows():
    print(*key, *(int(v) for v in row.dropna()), sep=",")
`

// TestPandasPivotsALadder: the CSV of a ladder is a tidy table of self-contained rows.
func TestPandasPivotsALadder(t *testing.T) {
	const python = "/usr/bin/python3" // the system's, which has the package pandas
	if err := exec.Command(python, "-c", "import pandas").Run(); err != nil {
		if os.Getenv("THRU_REQUIRE_LAB") != "" {
			t.Fatalf("pandas: %v (make ci-deps)", err)
		}
		t.Skip("python3 has no pandas")
	}
	for _, name := range []string{"rungs", "ladder"} { // of several rungs, and of one without a name
		t.Run(name, func(t *testing.T) { pivots(t, python, goldenDocuments()[name]) })
	}
}

// pivots checks that the table has a figure for each setting.
func pivots(t *testing.T, python string, d *measure.Document) {
	file := filepath.Join(t.TempDir(), "ladder.csv")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := CSV(f, d); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-c", pivot, file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	settings := map[string]bool{}
	for _, c := range d.Cells {
		if c.Goodput != nil {
			settings[c.Rung+c.From+c.To+csvPair(c.Window)+string(rune('0'+c.Streams))] = true
		}
	}
	figures := 0
	for _, l := range lines[1:] {
		figures += strings.Count(l, ",") - 2
	}
	if len(lines) < 3 || !strings.Contains(lines[0], "default") || figures != len(settings) {
		t.Errorf("%d figures of %d settings\n%s", figures, len(settings), out)
	}
}
