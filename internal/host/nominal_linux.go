package host

import (
	"errors"
	"slices"
)

// nominal reports whether the speed of an interface is only nominal: no wire
// of that rate exists. This holds for software (veth, tun, bridge, dummy, lo)
// and for virtual NICs. VLANs, bonds and the like follow their lower
// interfaces.
func (u *subject) nominal() *bool {
	is, err := u.nominalOf(u, maxStack)
	if err != nil {
		u.miss("speed_is_nominal", err)
		return nil
	}
	return &is
}

func (s *survey) nominalOf(u *subject, depth int) (bool, error) {
	if u.hardware() {
		if u.info.driver == "" {
			return false, errors.New("its driver is not known")
		}
		return u.vnic != "", nil
	}
	if u.sysfs != nil && s.kernel == nil {
		return false, u.sysfs
	}
	if !slices.Contains([]string{"vlan", "bond", "team", "macvlan", "ipvlan", "macsec"}, u.kind) {
		return true, nil
	}
	if u.elsewhere {
		return false, errors.New("its lower interface is in another network namespace")
	}
	if len(u.lower) == 0 || depth == 0 {
		return true, nil
	}
	for _, name := range u.lower {
		l := s.named[name]
		if l == nil {
			continue
		}
		if is, err := s.nominalOf(s.subject(*l), depth-1); is || err != nil {
			return is, err
		}
	}
	return false, nil
}
