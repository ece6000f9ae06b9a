package vsphere

import (
	"context"
	"fmt"
	"strings"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// bootOption is the prefix of the VMkernel's boot options (`esxcli system
// settings kernel list` shows them without it).
const bootOption = "VMkernel.Boot."

// notOfKernel reports whether an option is no VMkernel setting: agents, logs
// and people store values there. Some are secrets.
func notOfKernel(key string) bool {
	return beginsWithAny(key, "Annotations.", "Config.", "ScratchConfig.", "Syslog.", "UserVars.", "Vpx.", "Misc.HostName", "Misc.HostAgentUpdateLevel",
		"Misc.HostIPAddr", "Misc.PreferredHostName", "DCUI.", "Security.", "vpxd.")
}

// option returns the value of one advanced option of a host, or "".
func option(r *reader, key string) string {
	list, _ := value[types.ArrayOfOptionValue](r, "", "config.option", "")
	for _, b := range list.OptionValue {
		if o := b.GetOptionValue(); o.Key == key {
			v, _ := optionText(o.Value)
			return v
		}
	}
	return ""
}

// takeOptions adds the network settings to Sysctls, under esxcli's names:
// "/Net/UseHwTSO", and netNetqueueEnabled, a boot option.
func takeOptions(f *measure.Facts, r *reader) {
	list, _ := value[types.ArrayOfOptionValue](r, "sysctls", "config.option", "")
	f.Sysctls = map[string]string{}
	for _, b := range list.OptionValue {
		o := b.GetOptionValue()
		v, known := optionText(o.Value)
		switch {
		case !known:
		case o.Key == bootOption+"netNetqueueEnabled":
			f.Sysctls["netNetqueueEnabled"] = kernelText(v)
		case strings.HasPrefix(o.Key, "Net."):
			f.Sysctls[esxcliName(o.Key)] = v
		}
	}
	if len(f.Sysctls) == 0 {
		f.Sysctls = nil
		if refusal(r.object, "config.option") == "" {
			r.gap("sysctls", "the server reports no network option")
		}
	}
}

// esxcliName returns "/Net/UseHwTSO" for "Net.UseHwTSO".
func esxcliName(key string) string { return "/" + strings.ReplaceAll(key, ".", "/") }

// kernelText returns yes and no in esxcli's form for boot options.
func kernelText(v string) string {
	if v == "true" || v == "false" {
		return strings.ToUpper(v)
	}
	return v
}

// changed stores a setting that differs from the system's default.
func changed(f *measure.Facts, name, value string) {
	measure.Put(&f.Changed, name, value)
}

// takeChanged compares the options of a host with their defaults
// (OptionManager.supportedOption).
func takeChanged(f *measure.Facts, values []types.BaseOptionValue, defaults []types.OptionDef) {
	usual := map[string]string{}
	for _, d := range defaults {
		if v, known := defaultOf(d.OptionType); known {
			usual[d.Key] = v
		}
	}
	for _, b := range values {
		o := b.GetOptionValue()
		v, known := optionText(o.Value)
		d, has := usual[o.Key]
		if !known || !has || v == d || notOfKernel(o.Key) {
			continue
		}
		if boot, is := strings.CutPrefix(o.Key, bootOption); is {
			changed(f, boot, fmt.Sprintf("%s (default %s)", kernelText(v), kernelText(d)))
			continue
		}
		changed(f, esxcliName(o.Key), fmt.Sprintf("%s (default %s)", v, d))
	}
}

// defaultOf returns the default of an option.
func defaultOf(t types.BaseOptionType) (string, bool) {
	switch o := t.(type) {
	case *types.BoolOption:
		return fmt.Sprint(o.DefaultValue), true
	case *types.IntOption:
		return fmt.Sprint(o.DefaultValue), true
	case *types.LongOption:
		return fmt.Sprint(o.DefaultValue), true
	case *types.FloatOption:
		return fmt.Sprint(o.DefaultValue), true
	case *types.StringOption:
		return fmt.Sprintf("%.*s", maxSetting, o.DefaultValue), true
	case *types.ChoiceOption:
		if n := int(o.DefaultIndex); n >= 0 && n < len(o.ChoiceInfo) {
			if c := o.ChoiceInfo[n].GetElementDescription(); c != nil {
				return c.Key, true
			}
		}
	}
	return "", false
}

// asked holds the objects with further facts about a host.
type asked struct {
	host    string // id
	name    string
	options types.ManagedObjectReference
	image   types.ManagedObjectReference
	modules types.ManagedObjectReference
	values  []types.BaseOptionValue // the host's options
}

// askedOf reads these objects from a host's object.
func askedOf(o *types.ObjectContent, name string) asked {
	r := &reader{object: o}
	a := asked{host: o.Obj.Value, name: name}
	a.options, _ = value[types.ManagedObjectReference](r, "", "configManager.advancedOption", "")
	a.image, _ = value[types.ManagedObjectReference](r, "", "configManager.imageConfigManager", "")
	a.modules, _ = value[types.ManagedObjectReference](r, "", "configManager.kernelModuleSystem", "")
	list, _ := value[types.ArrayOfOptionValue](r, "", "config.option", "")
	a.values = list.OptionValue
	return a
}

// more reads these facts. An error means that the connection failed.
func (a asked) more(ctx context.Context, vc *vim25.Client, f *measure.Facts, refuse *refusals) error {
	err := a.defaults(ctx, vc, f, refuse)
	if err == nil {
		err = a.parameters(ctx, vc, f)
	}
	if err == nil {
		err = a.profile(ctx, vc, f)
	}
	return err
}

// defaults reads the default values of a host's options.
func (a asked) defaults(ctx context.Context, vc *vim25.Client, f *measure.Facts, refuse *refusals) error {
	const fact = "settings_changed"
	if a.options.Value == "" || len(a.values) == 0 {
		f.NotChecked = append(f.NotChecked, measure.NotChecked{Fact: fact, Why: "the server does not report the host's options"})
		return nil
	}
	q := query{refs: []types.ManagedObjectReference{a.options}, paths: []string{"supportedOption"}, page: 1}
	told := false
	err := q.each(ctx, vc, func(o *types.ObjectContent) error {
		refuse.note("hosts.options", a.name, o)
		r := &reader{object: o}
		list, ok := value[types.ArrayOfOptionDef](r, fact, "supportedOption", "the server does not report the defaults")
		if told = true; ok {
			takeChanged(f, a.values, list.OptionDef)
		}
		f.NotChecked = append(f.NotChecked, r.gaps...)
		return nil
	})
	switch {
	case err == nil && !told:
		f.NotChecked = append(f.NotChecked, measure.NotChecked{Fact: fact, Why: "the server does not report the defaults"})
	case err != nil && faultOf(err) != nil && !isFault[*types.NotAuthenticated](err):
		f.NotChecked = append(f.NotChecked, measure.NotChecked{Fact: fact, Why: faultWords(err)})
		return nil
	}
	return err
}

// profile adds the image that the host was installed from, like esxi.go.
func (a asked) profile(ctx context.Context, vc *vim25.Client, f *measure.Facts) error {
	const fact = "distribution.image_profile"
	if a.image.Value == "" || f.Distro == nil {
		f.NotChecked = append(f.NotChecked, measure.NotChecked{Fact: fact, Why: noReason})
		return nil
	}
	res, err := methods.HostImageConfigGetProfile(ctx, vc, &types.HostImageConfigGetProfile{This: a.image})
	switch {
	case err == nil && res.Returnval.Name != "":
		f.Distro = new(*f.Distro + " (" + res.Returnval.Name + ")")
	case err == nil:
		f.NotChecked = append(f.NotChecked, measure.NotChecked{Fact: fact, Why: noReason})
	case faultOf(err) == nil || isFault[*types.NotAuthenticated](err):
		return err // a connection error, not a refusal
	default:
		f.NotChecked = append(f.NotChecked, measure.NotChecked{Fact: fact, Why: faultWords(err)})
	}
	return nil
}

// parameters adds the driver parameters of the physical adapters that
// somebody has set, among them their queues (RSS, DRSS), under the names of
// package platform.
func (a asked) parameters(ctx context.Context, vc *vim25.Client, f *measure.Facts) error {
	const fact = "settings_changed.drivers"
	if a.modules.Value == "" {
		f.NotChecked = append(f.NotChecked, measure.NotChecked{Fact: fact, Why: noReason})
		return nil
	}
	var drivers []string
	for _, i := range f.Interfaces {
		if i.Driver != nil && *i.Kind == physical {
			drivers = append(drivers, *i.Driver)
		}
	}
	for _, driver := range compact(drivers) {
		res, err := methods.QueryConfiguredModuleOptionString(ctx, vc, &types.QueryConfiguredModuleOptionString{This: a.modules, Name: driver})
		switch {
		case err == nil:
			takeParameters(f, driver, res.Returnval)
		case faultOf(err) == nil || isFault[*types.NotAuthenticated](err):
			return err
		default: // the next driver would be refused too
			f.NotChecked = append(f.NotChecked, measure.NotChecked{Fact: fact, Why: faultWords(err)})
			return nil
		}
	}
	return nil
}

// takeParameters parses "RSS=4,4 DRSS=0", which has only parameters that are
// set.
func takeParameters(f *measure.Facts, driver, set string) {
	for _, word := range strings.Fields(set) {
		if name, v, is := strings.Cut(word, "="); is && name != "" && v != "" {
			changed(f, driver+"."+name, fmt.Sprintf("%.*s", maxSetting, v))
		}
	}
}

// faultWords describes a refused query.
func faultWords(err error) string {
	switch f := faultOf(err).(type) {
	case *types.NoPermission:
		return noPermission(f)
	case *types.ManagedObjectNotFound:
		return "the server has no service for it (" + f.Obj.Type + ")"
	case *types.NotSupported, *types.MethodNotFound:
		return "this version or edition does not report it"
	}
	return "the server refuses it: " + strings.TrimPrefix(fmt.Sprintf("%.200s", err), "ServerFaultCode: ")
}
