//! Programs, passes and instruments that the tests share.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use anfora_ir::{
    Arity, DType, Expr, FunctionBuilder, FusionPattern, Module, OpDef, OpPurity, OpRegistry, TypeCall, TypeError,
    TypeId,
};
use anfora_manager::{
    Instrument, ModulePass, Outcome, PassContext, PassContextBuilder, PassError, PassFailure, PassRun, Verification,
};

fn same_as_first(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    call.operand(0).ok_or_else(|| TypeError::new("an operand is missing"))
}

fn row(name: &'static str, arity: usize, purity: OpPurity) -> OpDef {
    let row = OpDef::new(name, "for tests", Arity::exactly(arity), same_as_first).fusion(FusionPattern::ElemWise);
    OpDef { purity, ..row }
}

/// Returns a builder of a context that does not verify, for tests whose passes may make any module.
pub(crate) fn unverified() -> PassContextBuilder {
    PassContext::builder().verification(Verification::Off)
}

/// Returns a module with the functions @f, @g and @h, each with three bindings.
pub(crate) fn module() -> Module {
    module_of(&["f", "g", "h"])
}

/// Returns a module without functions.
pub(crate) fn empty_module() -> Module {
    module_of(&[])
}

/// Returns the operators of these modules.
pub(crate) fn ops() -> Arc<OpRegistry> {
    let mut registry = OpRegistry::new();
    registry.register(row("add", 2, OpPurity::Pure)).unwrap();
    registry.register(row("negate", 1, OpPurity::Pure)).unwrap();
    registry.register(row("print", 1, OpPurity::Impure)).unwrap();
    Arc::new(registry)
}

pub(crate) fn module_of(names: &[&str]) -> Module {
    let mut module = Module::new(ops());
    for name in names {
        add_function(&mut module, name);
    }
    module
}

/// Adds a function with three bindings.
pub(crate) fn add_function(module: &mut Module, name: &str) {
    let ty = module.cx.types.static_tensor(DType::Float32, &[8]);
    let mut f = FunctionBuilder::new(module, name);
    let x = f.param("x", ty);
    let call = f.call_op("add", &[x, x], &[]).unwrap();
    let a = f.bind("a", call);
    let call = f.call_op("negate", &[a], &[]).unwrap();
    let b = f.bind("b", call);
    let call = f.call_op("add", &[b, a], &[]).unwrap();
    let c = f.bind("c", call);
    f.finish(c).unwrap();
}

/// Returns a text with everything in a module: functions in order, and every node of their arenas.
pub(crate) fn snapshot(module: &Module) -> String {
    let mut out = format!("attrs {:?}\n", module.attrs());
    for (key, f) in module.functions() {
        let body = &f.body;
        writeln!(
            out,
            "@{} {key:?} {:?} {:?} {:?} {:?} {:?}",
            module.name(key),
            f.visibility,
            f.ret,
            f.attrs,
            f.meta,
            f.kind
        )
        .unwrap();
        writeln!(out, "  params {:?} root {:?} operands {}", body.params(), body.root(), body.operand_count()).unwrap();
        for (id, e) in body.exprs() {
            writeln!(out, "  {id:?} {e:?} : {:?} {:?} {:?}", body.ty(id), body.operands_of(id), body.meta(id)).unwrap();
        }
    }
    for (id, g) in module.cx.globals.iter().filter(|(_, g)| g.target.function().is_some()) {
        writeln!(out, "{id:?} {} {:?} {:?}", module.cx.names.get(g.name), g.signature, g.target).unwrap();
    }
    out
}

/// Makes a pass that does nothing.
pub(crate) fn idle(name: &str, level: u8) -> ModulePass {
    ModulePass::new(name, level, |_, _| Ok(()))
}

/// Makes a pass that changes the module each time it runs.
pub(crate) fn bump(name: &str) -> ModulePass {
    ModulePass::new(name, 0, |module, _| {
        let n = match module.cx.find_attr(module.attrs(), "bumps").map(|a| module.cx.attrs.get(a).clone()) {
            Some(anfora_ir::Attr::Int(n)) => n,
            _ => 0,
        };
        set_bumps(module, n + 1);
        Ok(())
    })
}

pub(crate) fn set_bumps(module: &mut Module, n: i64) {
    let value = module.cx.int_attr(n);
    let attrs = module.cx.with_attr(module.attrs(), "bumps", Some(value));
    module.set_attrs(attrs);
}

/// Returns the number of times that [`bump`] has run.
pub(crate) fn bumps(module: &Module) -> i64 {
    match module.cx.find_attr(module.attrs(), "bumps").map(|a| module.cx.attrs.get(a)) {
        Some(anfora_ir::Attr::Int(n)) => *n,
        _ => 0,
    }
}

/// Makes a pass that changes much of the module and then ends with the result of `end`.
pub(crate) fn wreck(name: &str, end: fn() -> Result<(), PassError>) -> ModulePass {
    ModulePass::new(name, 0, move |module, _| {
        set_bumps(module, 1000);
        wreck_bodies(module);
        let keys = module.order().to_vec();
        if let [first, second, ..] = keys[..] {
            let global = module.get(second).and_then(|f| f.global()).unwrap();
            let name = module.cx.names.intern("renamed");
            assert!(module.rename(global, name));
            module.remove(&[first]);
        }
        add_function(module, "added");
        let mut order = module.order().to_vec();
        order.reverse();
        module.set_order(order);
        end()
    })
}

fn wreck_bodies(module: &mut Module) {
    let any = module.cx.types.any();
    for key in module.order().to_vec() {
        let (f, _) = module.get_mut(key).unwrap();
        let body = &mut f.body;
        for (id, e) in body.exprs().collect::<Vec<_>>() {
            if let Expr::CallOp { operands, .. } = e {
                body.set_operand(operands, 0, body.root());
                body.set_type(id, any);
            }
        }
        let root = body.root();
        let list = body.push_operands(&[root, root]);
        let pair = body.push(Expr::Tuple(list), any, None);
        body.set_root(pair);
        body.set_params(Vec::new());
        f.ret = Some(any);
    }
}

/// A log of events, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, event: impl Into<String>) {
        self.0.lock().unwrap().push(event.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// The action of a recorder in one of its hooks, besides recording it.
#[derive(Copy, Clone, PartialEq)]
pub(crate) enum Mischief {
    None,
    Fail(&'static str),
    Panic(&'static str),
    Veto,
    VetoPass(&'static str),
}

/// An instrument that records every hook.
pub(crate) struct Recorder {
    name: String,
    log: Log,
    mischief: Mischief,
}

impl Recorder {
    pub(crate) fn new(name: &str, log: &Log) -> Arc<Recorder> {
        Recorder::with(name, log, Mischief::None)
    }

    pub(crate) fn with(name: &str, log: &Log, mischief: Mischief) -> Arc<Recorder> {
        Arc::new(Recorder { name: name.to_string(), log: log.clone(), mischief })
    }

    fn hook(&self, hook: &'static str, pass: Option<&str>) -> Result<(), PassError> {
        match pass {
            Some(pass) => self.log.note(format!("{} {hook} {pass}", self.name)),
            None => self.log.note(format!("{} {hook}", self.name)),
        }
        if self.mischief == Mischief::Panic(hook) {
            panic!("{} panics in {hook}", self.name);
        }
        if self.mischief == Mischief::Fail(hook) {
            return Err(PassError::new(format!("{} fails in {hook}", self.name)));
        }
        Ok(())
    }
}

impl Instrument for Recorder {
    fn name(&self) -> &str {
        &self.name
    }

    fn enter(&self, _: &PassContext) -> Result<(), PassError> {
        self.hook("enter", None)
    }

    fn exit(&self, _: &PassContext) -> Result<(), PassError> {
        self.hook("exit", None)
    }

    fn should_run(&self, _: &Module, run: &PassRun<'_>) -> Result<bool, PassError> {
        self.hook("should_run", Some(run.name()))?;
        Ok(self.mischief != Mischief::Veto && self.mischief != Mischief::VetoPass(leak(run.name())))
    }

    fn run_before(&self, _: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        self.hook("before", Some(run.name()))
    }

    fn run_after(&self, _: &Module, run: &PassRun<'_>, _: &Outcome) -> Result<(), PassError> {
        self.hook("after", Some(run.name()))
    }

    fn on_error(&self, _: &Module, run: &PassRun<'_>, failure: &PassFailure) {
        self.log.note(format!("{} on_error {} ({})", self.name, run.name(), failure.pass()));
    }
}

fn leak(name: &str) -> &'static str {
    name.to_string().leak()
}

/// Returns a context with these instruments.
pub(crate) fn context(instruments: &[Arc<Recorder>]) -> PassContext {
    instruments.iter().fold(unverified(), |b, i| b.instrument(i.clone())).build().unwrap()
}
