//! Every public item of `visit` has a reason: code that ships uses it outside of `visit`, or a
//! table of `docs/guide/raf-and-relay.md` names it as a counterpart, or it is in the signature of
//! such an item.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use syn::visit::Visit;

use crate::sources::{Names, folder, is_conditional, is_public, read_sources};

/// The folders of code that ships.
const SHIPPED: [&str; 7] = ["manager/src", "ops/src", "interp/src", "passes/src", "onnx/src", "cli/src", "src"];

const TABLES: &str = "docs/guide/raf-and-relay.md";

fn read(path: &str) -> String {
    fs::read_to_string(folder(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn parse(path: &str) -> syn::File {
    syn::parse_file(&read(path)).expect("a source is Rust")
}

/// Adds the names that a `use` brings in.
fn imported(tree: &syn::UseTree, names: &mut BTreeSet<String>) {
    match tree {
        syn::UseTree::Path(path) => imported(&path.tree, names),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| imported(tree, names)),
        syn::UseTree::Name(name) => drop(names.insert(name.ident.to_string())),
        syn::UseTree::Rename(rename) => drop(names.insert(rename.ident.to_string())),
        syn::UseTree::Glob(_) => panic!("a glob names nothing"),
    }
}

/// Returns the public items of a module of `visit` and of the public modules in it.
fn public_items(path: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for item in parse(path).items {
        let (visibility, name) = match &item {
            syn::Item::Use(item) if is_public(&item.vis) => {
                imported(&item.tree, &mut found);
                continue;
            }
            syn::Item::Mod(module) if is_public(&module.vis) => {
                found.append(&mut public_items(&format!("visit/src/{}/mod.rs", module.ident)));
                continue;
            }
            syn::Item::Const(item) => (&item.vis, &item.ident),
            syn::Item::Enum(item) => (&item.vis, &item.ident),
            syn::Item::Fn(item) => (&item.vis, &item.sig.ident),
            syn::Item::Static(item) => (&item.vis, &item.ident),
            syn::Item::Struct(item) => (&item.vis, &item.ident),
            syn::Item::Trait(item) => (&item.vis, &item.ident),
            syn::Item::Type(item) => (&item.vis, &item.ident),
            _ => continue,
        };
        if is_public(visibility) {
            found.insert(name.to_string());
        }
    }
    found
}

/// A map from each item of some sources to the names in its signature, in its public fields and in
/// the signatures of its public methods. A name stands for all items of that name.
#[derive(Default)]
struct Signatures(BTreeMap<String, Names>);

impl Signatures {
    fn of(&mut self, item: &syn::Ident) -> &mut Names {
        self.0.entry(item.to_string()).or_default()
    }

    fn add_fields(&mut self, item: &syn::Ident, fields: &syn::Fields, all: bool) {
        let names = self.of(item);
        fields.iter().filter(|f| all || is_public(&f.vis)).for_each(|field| names.visit_type(&field.ty));
    }
}

impl<'a> Visit<'a> for Signatures {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.of(&item.sig.ident).visit_signature(&item.sig);
    }

    fn visit_item_type(&mut self, item: &'a syn::ItemType) {
        self.of(&item.ident).visit_type(&item.ty);
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.of(&item.ident).visit_generics(&item.generics);
        self.add_fields(&item.ident, &item.fields, false);
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        self.of(&item.ident).visit_generics(&item.generics);
        item.variants.iter().for_each(|variant| self.add_fields(&item.ident, &variant.fields, true));
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        let names = self.of(&item.ident);
        names.visit_generics(&item.generics);
        item.supertraits.iter().for_each(|bound| names.visit_type_param_bound(bound));
        for member in &item.items {
            match member {
                syn::TraitItem::Fn(method) => names.visit_signature(&method.sig),
                syn::TraitItem::Const(constant) => names.visit_type(&constant.ty),
                member => names.visit_trait_item(member),
            }
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let syn::Type::Path(owner) = &*item.self_ty else { return };
        let Some(owner) = owner.path.segments.last() else { return };
        let names = self.of(&owner.ident);
        for member in &item.items {
            match member {
                syn::ImplItem::Fn(method) if is_public(&method.vis) => names.visit_signature(&method.sig),
                _ => {}
            }
        }
    }
}

/// The names that shipped code takes from `anfora_visit`.
#[derive(Default)]
struct Uses(BTreeSet<String>);

impl<'a> Visit<'a> for Uses {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_conditional(module) {
            syn::visit::visit_item_mod(self, module);
        }
    }

    // The facade and its prelude re-export items, which does not count as a use.
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        match &item.tree {
            syn::UseTree::Path(path) if path.ident == "anfora_visit" && !is_public(&item.vis) => {
                imported(&path.tree, &mut self.0);
            }
            _ => {}
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.segments.first().is_some_and(|first| first.ident == "anfora_visit") {
            self.0.extend(path.segments.iter().map(|segment| segment.ident.to_string()));
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        let text = call.tokens.to_string().replace(' ', "");
        for path in text.split("anfora_visit::").skip(1) {
            let path: String = path.chars().take_while(|c| c.is_alphanumeric() || "_:".contains(*c)).collect();
            self.0.extend(path.split("::").map(String::from));
        }
    }
}

fn used() -> BTreeSet<String> {
    let mut uses = Uses::default();
    for part in SHIPPED {
        read_sources(&folder(part), &mut uses);
    }
    uses.0
}

/// Returns the names in backticks in the second column of the tables.
fn named() -> BTreeSet<String> {
    let text = read(TABLES).replace("\\|", " ");
    let rows = text.lines().filter_map(|line| line.strip_prefix('|')?.split('|').nth(1));
    let code = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    code.flat_map(|code| code.split(|c: char| !c.is_alphanumeric() && c != '_')).map(String::from).collect()
}

#[test]
fn every_public_item_of_visit_is_used_or_named() {
    let public = public_items("visit/src/lib.rs");
    let mut signatures = Signatures::default();
    read_sources(&folder("visit/src"), &mut signatures);
    let (used, named) = (used(), named());
    let mut work: Vec<&String> = public.iter().filter(|&item| used.contains(item) || named.contains(item)).collect();
    let mut justified: BTreeSet<&String> = work.iter().copied().collect();
    while let Some(item) = work.pop() {
        let mentioned = signatures.0.get(item).into_iter().flat_map(|names| &names.0);
        for name in mentioned.filter_map(|name| public.get(name)) {
            if justified.insert(name) {
                work.push(name);
            }
        }
    }
    let unjustified: Vec<&String> = public.iter().filter(|item| !justified.contains(item)).collect();
    assert!(
        unjustified.is_empty(),
        "these public items of `visit` are neither used by code that ships, nor named in a table of {TABLES}, nor in \
         the signature of an item that is: {unjustified:?}"
    );
}
