package host

import (
	"errors"
	"path"
	"slices"
	"strings"

	"thru/internal/measure"
)

// vnic returns the kind of virtual NIC by its driver: "paravirtual",
// "emulated" (the driver of an old physical NIC in a guest), or empty for a
// physical NIC. The speed of a virtual NIC is only nominal.
func vnic(driver string, virtual bool) string {
	switch {
	case measure.ParavirtualDriver(driver) || driver == "netdevsim":
		return "paravirtual"
	case virtual && measure.EmulatedDriver(driver):
		return "emulated"
	}
	return ""
}

// virtualFunction reports whether a device is an SR-IOV virtual function,
// which a guest sees without its physical function: by drivers for virtual
// functions only, or by the device number where one driver handles both
// (ConnectX-3 to ConnectX-7).
func virtualFunction(driver, device string) bool {
	drivers := []string{"ixgbevf", "igbvf", "iavf", "i40evf", "cxgb4vf", "fm10k", "mana", "ena"}
	mellanox := []string{"0x1004", "0x1012", "0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e"}
	return slices.Contains(drivers, driver) || strings.HasPrefix(driver, "mlx") && slices.Contains(mellanox, device)
}

// ofKernel reports whether the driver of a device came with the kernel and
// was built for it: it is built in, or its module taints the kernel neither
// as out of tree (O), nor as unsigned where modules are signed (E), nor as
// loaded by force (F) (Documentation/admin-guide/tainted-kernels.rst). The
// driver's version does not show it: many in-tree drivers have their own
// version numbers.
func (f FS) ofKernel(device string) (bool, error) {
	if device == "" {
		return false, errors.New("/sys does not show its device")
	}
	driver := path.Join(device, "driver")
	if !f.Exists(driver) {
		return false, errors.New("/sys shows no driver")
	}
	module := path.Join(driver, "module")
	if !f.Exists(module) {
		return true, nil // built in
	}
	taint, err := f.Text(path.Join(module, "taint"))
	if err != nil {
		if !f.Exists(path.Join(module, "initstate")) {
			return true, nil // built in, with parameters
		}
		return false, err // Linux before 3.5
	}
	return !strings.ContainsAny(taint, "OEF"), nil
}
