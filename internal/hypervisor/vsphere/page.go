package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/unit"
)

// Objects of one page. Each object is converted to a measure record before
// the next page is requested, so the records limit the memory. A host has
// some hundred times the properties of a folder.
const (
	pageSize     = 100
	hostPageSize = 10
)

// query requests properties of all objects of some types, or of given
// objects.
type query struct {
	types []string                       // all objects of these types, or
	refs  []types.ManagedObjectReference // these, of one type
	paths []string                       // properties
	page  int32                          // objects at a time; 0: pageSize
}

// each passes every object of a query to take, page by page, until take
// returns an error. It leaves out objects that were removed meanwhile.
func (q query) each(ctx context.Context, vc *vim25.Client, take func(*types.ObjectContent) error) error {
	q.page = cmp.Or(q.page, pageSize)
	if q.types != nil {
		return q.all(ctx, vc, take)
	}
	for len(q.refs) > 0 {
		n := min(len(q.refs), int(q.page))
		if err := q.some(ctx, vc, q.refs[:n], take); err != nil {
			return err
		}
		q.refs = q.refs[n:]
	}
	return nil
}

// all iterates over a view of all objects of the types.
func (q query) all(ctx context.Context, vc *vim25.Client, take func(*types.ObjectContent) error) error {
	content := vc.ServiceContent
	if content.ViewManager == nil {
		return errNotVSphere
	}
	made, err := methods.CreateContainerView(ctx, vc, &types.CreateContainerView{This: *content.ViewManager, Container: content.RootFolder, Type: q.types, Recursive: true})
	if err != nil {
		return err
	}
	view := made.Returnval
	defer func() { // the end of the session would remove it too
		_, _ = methods.DestroyView(ctx, vc, &types.DestroyView{This: view})
	}()
	return q.retrieve(ctx, vc, []types.ObjectSpec{{Obj: view, Skip: new(true), SelectSet: []types.BaseSelectionSpec{
		&types.TraversalSpec{Type: view.Type, Path: "view"}}}}, q.types, take)
}

// some requests objects by reference. A server refuses the whole request
// where one object is gone.
func (q query) some(ctx context.Context, vc *vim25.Client, refs []types.ManagedObjectReference, take func(*types.ObjectContent) error) error {
	for {
		set := unit.Mapped(refs, func(r types.ManagedObjectReference) types.ObjectSpec { return types.ObjectSpec{Obj: r} })
		if len(set) == 0 {
			return nil
		}
		err := q.retrieve(ctx, vc, set, []string{refs[0].Type}, take)
		gone, is := faultOf(err).(*types.ManagedObjectNotFound)
		if err == nil || !is {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(refs), func(r types.ManagedObjectReference) bool { return r.Value == gone.Obj.Value })
		if len(left) == len(refs) {
			return err // for another reason
		}
		refs = left
	}
}

// retrieve iterates over the pages of one request.
func (q query) retrieve(ctx context.Context, vc *vim25.Client, objects []types.ObjectSpec, kinds []string, take func(*types.ObjectContent) error) error {
	spec := types.PropertyFilterSpec{ObjectSet: objects}
	for _, k := range kinds {
		spec.PropSet = append(spec.PropSet, types.PropertySpec{Type: k, PathSet: q.paths})
	}
	collector := vc.ServiceContent.PropertyCollector
	first, err := methods.RetrievePropertiesEx(ctx, vc, &types.RetrievePropertiesEx{This: collector,
		SpecSet: []types.PropertyFilterSpec{spec}, Options: types.RetrieveOptions{MaxObjects: q.page}})
	if err != nil || first.Returnval == nil {
		return err
	}
	page := *first.Returnval
	for seen := 0; ; {
		if seen += len(page.Objects); seen > mostObjects {
			return errTooMuch
		}
		for i := range page.Objects {
			if err := take(&page.Objects[i]); err != nil {
				return err
			}
		}
		if page.Token == "" {
			return nil
		}
		next, err := methods.ContinueRetrievePropertiesEx(ctx, vc, &types.ContinueRetrievePropertiesEx{This: collector, Token: page.Token})
		if err != nil {
			return err
		}
		if len(next.Returnval.Objects) == 0 && next.Returnval.Token == page.Token {
			return fmt.Errorf("the server keeps sending empty pages")
		}
		page = next.Returnval
	}
}
