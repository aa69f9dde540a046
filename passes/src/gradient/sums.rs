//! Functions that add two adjoints of a large type, field by field.
//!
//! The fields of a tuple may be of the same type, so a type of n tuples may have 2^n tensors. A sum
//! of such adjoints is a call of a function, which each type has once. Such a function calls those
//! of the types of its fields, so the functions take as much text as the types.

use anfora_ir::{Context, FunctionBuilder, FunctionKey, GlobalId, Module, NameSupply, TypeId, Visibility};
use rustc_hash::FxHashMap;

/// The name of these functions.
const SUM: &str = "add_adjoints";

/// The types whose sums are functions.
#[derive(Default)]
pub(super) struct Sums {
    known: FxHashMap<TypeId, (GlobalId, TypeId)>,
    order: Vec<TypeId>,
}

impl Sums {
    /// Returns the function for a type, a tuple without symbols, and its signature.
    pub(super) fn of(&mut self, cx: &mut Context, names: &mut NameSupply, ty: TypeId) -> (GlobalId, TypeId) {
        if let Some(&known) = self.known.get(&ty) {
            return known;
        }
        let global = names.fresh(cx, SUM);
        let signature = cx.types.function(&[ty, ty], ty, &[]);
        self.known.insert(ty, (global, signature));
        self.order.push(ty);
        (global, signature)
    }

    /// Adds the functions to a module. Returns them in order.
    pub(super) fn add_to(mut self, module: &mut Module, mut names: NameSupply) -> Vec<FunctionKey> {
        let mut next = 0;
        while let Some(&ty) = self.order.get(next) {
            let fields = module.cx.types.as_tuple(ty).unwrap_or_default().to_vec();
            for field in fields {
                if module.cx.types.as_tuple(field).is_some_and(|fields| !fields.is_empty()) {
                    self.of(&mut module.cx, &mut names, field);
                }
            }
            let (global, signature) = self.known[&ty];
            module.set_signature(global, signature);
            next += 1;
        }
        self.order.iter().map(|&ty| self.add_one(module, ty)).collect()
    }

    fn add_one(&self, module: &mut Module, ty: TypeId) -> FunctionKey {
        let name = module.cx.global_name(self.known[&ty].0).to_string();
        let mut f = FunctionBuilder::new(module, &name);
        f.visibility(Visibility::Private);
        f.result(ty);
        let operands = [f.param("a", ty), f.param("b", ty)];
        let fields = f.cx().types.as_tuple(ty).unwrap_or_default().to_vec();
        let unit = f.cx().types.unit();
        let mut sums = Vec::with_capacity(fields.len());
        for (i, field) in (0..).zip(fields) {
            if field == unit {
                let none = f.tuple(&[]);
                sums.push(f.bind("", none));
                continue;
            }
            let parts = operands.map(|operand| {
                let part = f.proj(operand, i).expect("both operands have the field");
                f.bind("", part)
            });
            let sum = match self.known.get(&field) {
                Some(&(global, _)) => {
                    let callee = f.editor().global(global);
                    f.call(callee, &parts)
                }
                None => f.call_op("add", &parts, &[]),
            };
            let sum = sum.expect("values of the same type are added");
            sums.push(f.bind("", sum));
        }
        let result = f.tuple(&sums);
        f.finish(result).expect("a fresh name has no function, and each field has its type")
    }
}
