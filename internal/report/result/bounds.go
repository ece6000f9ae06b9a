package result

// Limits of what is shown, so that a report of any document stays readable and a page stays under 1 MB. The
// JSON document has everything.
const (
	MaxCells      = 100
	FewCells      = 4   // main cells; up to this number each is shown
	MaxLines      = 60  // warnings, reasons, facts of one kind
	FleetLines    = 8   // warnings and reasons that a terminal shows for a plan of many pairs
	GapFacts      = 4   // facts named for each reason; the page has all
	MaxNamed      = 10  // pairs for a reason
	MaxHostRows   = 200 // hosts
	MaxTargetRows = 200 // targets, on a page
	MaxBars       = 8   // flows in a picture; more become a matrix or a table
	MaxCaptured   = 4   // flows, and captures of one flow
	MaxNumbers    = 5   // packets that one line names
	MaxFindings   = 8   // of one direction
	MaxProofs     = 8   // of one finding
	MaxCommands   = 6   // of one finding
)

// Longest texts of other programs and hosts, in characters.
const (
	MaxAnswer    = 400 // a line of the answer
	LongestCause = 60  // an id
	LongestWhy   = 200
	LongestOrder = 1000 // a command
	LongestPlace = 40   // a capture's name
)
