// Package place finds end points among the virtual machines and hosts that
// hypervisors tell of, and says how two of them lie to each other: on one host,
// in one VLAN, in one data center or in two. Pure: inventories and facts go in.
package place
