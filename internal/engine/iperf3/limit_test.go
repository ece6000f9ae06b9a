package iperf3

import "time"

// limit bounds each step of a test; it is no assertion of speed.
const limit = 30 * time.Second
