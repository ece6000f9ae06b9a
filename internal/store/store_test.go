package store_test

import (
	"testing"

	"go.uber.org/goleak"

	"thru/internal/store"
	"thru/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	storetest.Run(t, storetest.Suite{Open: func(*testing.T) store.Store { return store.Memory() }})
}
