package agent

import "testing"

func TestTurns(t *testing.T) {
	var q turns
	ask := func(client string, together bool, want int) {
		t.Helper()
		if got := q.ask(client, together); got != want {
			t.Errorf("%s asks: %d ahead, want %d", client, got, want)
		}
	}
	ask("a", false, 0)
	ask("a", false, 0) // repeated: still its turn
	ask("b", false, 1)
	ask("c", true, 2)
	ask("d", true, 3)
	if !q.has("a") || q.has("b") || q.has("nobody") {
		t.Error("only a has the turn")
	}
	q.giveBack("a")
	ask("b", false, 0)
	q.giveBack("b")
	ask("c", true, 0) // c and d share it
	ask("d", true, 0)
	ask("e", false, 2)
	ask("f", true, 3) // does not overtake e, which wants to be alone
	q.giveBack("c")
	q.giveBack("d")
	ask("e", false, 0)
	q.giveBack("nobody")
	if q.has("f") {
		t.Error("f has the turn together with e")
	}
}
